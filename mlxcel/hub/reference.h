#pragma once

#include <string>
#include <string_view>

namespace mlxcel::hub {

/// A repository of the hub. Both sides are `[A-Za-z0-9._-]+` and neither is
/// "." or "..", so that either can name a folder.
struct Repository {
  std::string owner;
  std::string name;

  /// "owner/name".
  std::string id() const {
    return owner + "/" + name;
  }
};

/// What the text of `-m` means.
struct Reference {
  enum class Kind { path, repository };

  Kind kind = Kind::path;
  std::string path;       ///< an existing file or directory
  Repository repository;  ///< if it is one
  /// The text was a name alone; the organisation was put before it.
  bool expanded = false;
};

/// Refuses what no model is opened from: GGUF files and URLs. A directory is
/// never refused. Throws Error(unsupported) that says what to give instead;
/// user-info and the query of a URL are not repeated.
void check_format(const std::string& text);

/// check_format(), then an existing path, `owner/name`, or a name alone, which
/// gets the default organisation. Throws Error(not_found) that lists the three
/// forms for anything else.
Reference parse_reference(const std::string& text);

/// parse_reference() for commands where a path means nothing.
/// Throws Error(usage).
Reference parse_repository(const std::string& text);

/// MLXCEL_DEFAULT_ORG, or mlx-community if it is unset or blank. Throws
/// Error(usage) if it can't be the owner of a repository.
std::string default_organisation();

/// Whether a text can be one side of owner/name.
bool is_repository_part(std::string_view text);

/// Whether a text can name a branch, tag or commit and be looked up below a
/// folder.
bool is_revision(const std::string& text);
/// Throws Error(usage) that names --revision if it can't.
void check_revision(const std::string& revision);

}  // namespace mlxcel::hub
