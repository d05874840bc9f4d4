#include "mlxcel/loading/nonstandard.h"

namespace mlxcel {

std::unique_ptr<LanguageModel> load_nonstandard_from_dir(
    const LoadRequest& request
) {
  return request.entry.family->load_directory(
      request.directory, request.config, request.backend
  );
}

}  // namespace mlxcel
