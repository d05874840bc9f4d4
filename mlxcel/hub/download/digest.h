#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct evp_md_ctx_st;

namespace mlxcel::hub {

/// How a hub names content: large files by their SHA-256, the others by git's
/// hash of a blob, which is over "blob SIZE\0" and the content, with SHA-1 or,
/// in repositories of that format, SHA-256.
/// (git: Documentation/gitformat-loose.adoc)
struct ContentId {
  enum class Kind { none, sha256, git_blob };
  Kind kind = Kind::none;
  std::string hex;  ///< lower case

  /// "SHA-256 1a2b…", for messages.
  std::string text() const;
};

/// The hash of a content that arrives in pieces.
class Digest {
 public:
  /// `size` is that of the whole content.
  Digest(const ContentId& id, uint64_t size);

  void add(const void* data, size_t count);
  /// In lower-case hexadecimal; empty if the id has no kind. Once.
  std::string finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// SHA-256 of a text, in lower-case hexadecimal.
std::string sha256_hex(const std::string& text);

/// Whether the text is `digits` hexadecimal digits.
bool is_hex(const std::string& text, size_t digits);

}  // namespace mlxcel::hub
