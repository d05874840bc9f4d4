#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mlxcel::hub {

/// Whether a path from a repository stays below the directory it is put in:
/// relative, UTF-8 without control characters and backslashes, no empty, "."
/// or ".." segment, no segment that a file system would refuse.
bool is_safe_path(std::string_view path);

/// Whether running a model can need the file: weights, configs, tokenizer
/// files and templates.
bool is_model_file(std::string_view path);

/// Whether all of the text matches: `*` any characters, also slashes, `?` one,
/// `[a-z]` and `[!a-z]` one of a set. A pattern that ends with a slash stands
/// for all below it.
bool glob_match(std::string_view pattern, std::string_view text);

/// Those of `paths` that a model needs and that match one of the globs, if
/// there are any; unsafe ones are left out and added to `unsafe`. Sorted, the
/// weights last, so that an index is there before what it lists. Throws
/// Error(invalid_input) if two of them can't both be files: a name that is
/// also a directory's, or names that differ in case only.
std::vector<std::string> select_files(
    const std::vector<std::string>& paths,
    const std::vector<std::string>& globs,
    std::vector<std::string>& unsafe
);

}  // namespace mlxcel::hub
