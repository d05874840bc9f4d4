#include "mlxcel/hub/download/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "mlxcel/core/error.h"

namespace mlxcel::hub {

namespace {

constexpr size_t kSha1Digits = 40;

void require(bool done) {
  if (!done) {
    fail(ErrorCode::internal, "[download] the hash function is not available");
  }
}

}  // namespace

std::string ContentId::text() const {
  return (kind == Kind::sha256 ? "SHA-256 " : "git blob ") + hex;
}

void Digest::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Digest::Digest(const ContentId& id, uint64_t size) {
  if (id.kind == ContentId::Kind::none) {
    return;
  }
  bool git = id.kind == ContentId::Kind::git_blob;
  bool sha1 = git && id.hex.size() == kSha1Digits;
  context_.reset(EVP_MD_CTX_new());
  require(
      context_ != nullptr &&
      EVP_DigestInit_ex(
          context_.get(), sha1 ? EVP_sha1() : EVP_sha256(), nullptr
      ) == 1
  );
  if (git) {
    std::string head = fmt::format("blob {}", size);
    add(head.c_str(), head.size() + 1);
  }
}

void Digest::add(const void* data, size_t count) {
  if (context_ != nullptr) {
    require(EVP_DigestUpdate(context_.get(), data, count) == 1);
  }
}

std::string Digest::finish() {
  if (context_ == nullptr) {
    return "";
  }
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  require(EVP_DigestFinal_ex(context_.get(), bytes, &size) == 1);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += fmt::format("{:02x}", bytes[i]);
  }
  return hex;
}

std::string sha256_hex(const std::string& text) {
  Digest digest({ContentId::Kind::sha256, ""}, 0);
  digest.add(text.data(), text.size());
  return digest.finish();
}

bool is_hex(const std::string& text, size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
                  (c >= 'A' && c <= 'F');
         });
}

}  // namespace mlxcel::hub
