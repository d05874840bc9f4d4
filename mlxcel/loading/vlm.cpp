#include "mlxcel/loading/vlm.h"

namespace mlxcel {

std::unique_ptr<LanguageModel> load_vlm_from_dir(const LoadRequest& request) {
  return request.entry.family->load_directory(
      request.directory, request.config, request.backend
  );
}

}  // namespace mlxcel
