#include "mlxcel/hub/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "mlxcel/core/containment.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"

namespace mlxcel::hub {

namespace {

// Of the files of checkpoints, tokenizers and templates.
constexpr std::string_view kExtensions[] = {
    ".json",
    ".jsonl",
    ".safetensors",
    ".jinja",
    ".model",
    ".tiktoken",
    ".txt",
};

bool is_read(std::string_view name) {
  return name[0] != '.' && std::any_of(
                               std::begin(kExtensions),
                               std::end(kExtensions),
                               [&](std::string_view extension) {
                                 return name.ends_with(extension);
                               }
                           );
}

// Folders of templates, and the numbered ones of embedders (1_Pooling).
bool is_read_folder(std::string_view name) {
  return name == "additional_chat_templates" ||
         (name[0] >= '0' && name[0] <= '9');
}

void check_folder(
    const std::string& root, const std::string& folder, bool inner
) {
  for (const std::string& name : os::list_directory(folder)) {
    std::string path = join_path(folder, name);
    os::FileInfo self;
    os::FileInfo target;
    if (!os::stat_path(path, self, false) || !os::stat_path(path, target)) {
      continue;
    }
    bool wanted = target.directory ? is_read_folder(name) : is_read(name);
    if (self.symlink && wanted && !stays_inside(root, path)) {
      std::error_code error;
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[model] {}: a link to {}, outside of the model directory; copy "
              "it there",
              path,
              quote(std::filesystem::read_symlink(path, error).string(), 300)
          )
      );
    }
    if (target.directory && wanted && !inner) {
      check_folder(root, path, true);
    }
  }
}

}  // namespace

void check_links(const std::string& directory) {
  check_folder(directory, directory, false);
}

}  // namespace mlxcel::hub
