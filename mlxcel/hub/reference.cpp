#include "mlxcel/hub/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/text.h"

namespace mlxcel::hub {

namespace {

constexpr const char* kDefaultOrganisation = "mlx-community";
constexpr const char* kOrganisationVariable = "MLXCEL_DEFAULT_ORG";
constexpr std::string_view kGguf = ".gguf";
constexpr std::string_view kScheme = "://";
constexpr size_t kMaxPart = 128;
constexpr size_t kMaxRevision = 255;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9');
}

// NAME-00001-of-00003 without the extension.
bool is_split_name(std::string_view stem) {
  constexpr std::string_view kShape = "-ddddd-of-ddddd";
  if (stem.size() < kShape.size()) {
    return false;
  }
  stem.remove_prefix(stem.size() - kShape.size());
  return std::equal(
      stem.begin(),
      stem.end(),
      kShape.begin(),
      [](char c, char shape) {
        return shape == 'd' ? c >= '0' && c <= '9' : c == shape;
      }
  );
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

struct Url {
  std::string scheme;
  std::string host;
  std::vector<std::string> path;  // without empty parts
  std::string shown;
};

// scheme://user-info@host/path?query#fragment, generously: what it is used
// for is a message.
Url read_url(std::string_view text) {
  Url url;
  size_t scheme = text.find(kScheme);
  url.scheme = ascii_lower(text.substr(0, scheme));
  text.remove_prefix(scheme + kScheme.size());
  text = text.substr(0, text.find_first_of("?#"));
  size_t end = text.find_first_of("/\\");
  std::string_view authority = text.substr(0, end);
  std::string_view path = end == std::string_view::npos ? "" : text.substr(end);
  size_t at = authority.rfind('@');
  bool has_user = at != std::string_view::npos;
  if (has_user) {
    authority.remove_prefix(at + 1);
  }
  url.host = ascii_lower(authority.substr(0, authority.find(':')));
  for (std::string& part : split(path, '/')) {
    if (!part.empty()) {
      url.path.push_back(std::move(part));
    }
  }
  url.shown = fmt::format(
      "{}://{}{}{}", url.scheme, has_user ? "***@" : "", authority, path
  );
  return url;
}

bool is_hugging_face(const Url& url) {
  return url.host == "huggingface.co" || url.host == "www.huggingface.co" ||
         url.host == "hf.co";
}

// The repository that a URL of the hub leads into.
std::optional<Repository> repository_of(Url url) {
  if (url.scheme == "hf" && !is_hugging_face(url)) {
    url.path.insert(url.path.begin(), url.host);
  } else if (!is_hugging_face(url)) {
    return std::nullopt;
  }
  if (!url.path.empty() && (url.path[0] == "models" || url.path[0] == "api")) {
    url.path.erase(url.path.begin());
  }
  if (!url.path.empty() && url.path[0] == "models") {
    url.path.erase(url.path.begin());
  }
  if (url.path.size() < 2 || url.path[0] == "datasets" ||
      url.path[0] == "spaces" || !is_repository_part(url.path[0]) ||
      !is_repository_part(url.path[1])) {
    return std::nullopt;
  }
  return Repository{url.path[0], url.path[1]};
}

[[noreturn]] void refuse_url(const std::string& text) {
  Url url = read_url(text);
  auto repository = repository_of(url);
  fail(
      ErrorCode::unsupported,
      fmt::format(
          "[model] {}: models are not opened from URLs; {}",
          quote(url.shown, 300),
          repository ? fmt::format("give the repository: {}", repository->id())
                     : "give a directory or the repository as owner/name"
      )
  );
}

void refuse_gguf(const std::string& text) {
  std::string low = ascii_lower(text);
  if (!low.ends_with(kGguf)) {
    return;
  }
  std::string_view stem(low.data(), low.size() - kGguf.size());
  fail(
      ErrorCode::unsupported,
      is_split_name(stem)
          ? fmt::format(
                "[model] {}: one part of a split GGUF file; models are run "
                "from SafeTensors checkpoints",
                quote(text, 300)
            )
          : fmt::format(
                "[model] {}: models don't run from GGUF files; `mlxcel "
                "convert FILE.gguf OUT_DIR` makes a model directory of one",
                quote(text, 300)
            )
  );
}

[[noreturn]] void refuse_form(const std::string& text) {
  fail(
      ErrorCode::not_found,
      fmt::format(
          "[model] {}: no such model directory, and no name of a model. "
          "Accepted are an existing path, OWNER/NAME of a repository, and "
          "NAME alone, which means {}/NAME",
          quote(text, 300),
          default_organisation()
      )
  );
}

std::optional<Reference> read_repository(const std::string& text) {
  Reference reference;
  reference.kind = Reference::Kind::repository;
  size_t slash = text.find('/');
  if (slash == std::string::npos) {
    if (!is_repository_part(text)) {
      return std::nullopt;
    }
    reference.repository = {default_organisation(), text};
    reference.expanded = true;
    return reference;
  }
  reference.repository = {text.substr(0, slash), text.substr(slash + 1)};
  if (!is_repository_part(reference.repository.owner) ||
      !is_repository_part(reference.repository.name)) {
    return std::nullopt;
  }
  return reference;
}

}  // namespace

bool is_repository_part(std::string_view text) {
  if (text.empty() || text.size() > kMaxPart || text == "." || text == "..") {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

std::string default_organisation() {
  const char* given = os::environment(kOrganisationVariable);
  std::string name = given == nullptr ? "" : given;
  if (name.find_first_not_of(" \t\r\n") == std::string::npos) {
    return kDefaultOrganisation;
  }
  if (!is_repository_part(name)) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[environment] {}: {} can't own a repository (letters, digits, "
            "`.`, `_` and `-` are allowed)",
            kOrganisationVariable,
            quote(name)
        )
    );
  }
  return name;
}

bool is_revision(const std::string& text) {
  if (text.empty() || text.size() > kMaxRevision || text[0] == '-') {
    return false;
  }
  bool letters = std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c != 0x7f &&
           std::string_view("\\~^:?*[").find(c) == std::string_view::npos;
  });
  std::vector<std::string> parts = split(text, '/');
  return letters && std::none_of(parts.begin(), parts.end(), [](auto& part) {
           return part.empty() || part == "." || part == "..";
         });
}

void check_revision(const std::string& revision) {
  if (!is_revision(revision)) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[command line] --revision {}: no branch, tag or commit has such a "
            "name",
            quote(revision)
        )
    );
  }
}

void check_format(const std::string& text) {
  if (directory_exists(text)) {
    return;
  }
  if (text.find(kScheme) != std::string::npos) {
    refuse_url(text);
  }
  for (std::string_view host : {"huggingface.co/", "hf.co/"}) {
    if (ascii_lower(text).starts_with(host) && !file_exists(text)) {
      refuse_url("https://" + text);
    }
  }
  refuse_gguf(text);
}

Reference parse_reference(const std::string& text) {
  check_format(text);
  if (directory_exists(text) || file_exists(text)) {
    Reference reference;
    reference.path = text;
    return reference;
  }
  auto reference = read_repository(text);
  if (!reference) {
    refuse_form(text);
  }
  return *reference;
}

Reference parse_repository(const std::string& text) {
  if (text.find(kScheme) != std::string::npos) {
    refuse_url(text);
  }
  auto reference = read_repository(text);
  if (!reference) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[command line] {} is no repository; give OWNER/NAME, or NAME "
            "alone for {}/NAME",
            quote(text, 300),
            default_organisation()
        )
    );
  }
  return *reference;
}

}  // namespace mlxcel::hub
