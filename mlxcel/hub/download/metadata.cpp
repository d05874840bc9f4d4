#include "mlxcel/hub/download/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "mlxcel/core/json.h"
#include "mlxcel/core/text.h"

namespace mlxcel::hub {

namespace {

constexpr int kDepth = 64;
constexpr size_t kSha1Digits = 40;
constexpr size_t kSha256Digits = 64;

std::string hex_or_reject(const Json& field, bool sha1_too) {
  std::string hex = field.as_string();
  if (!is_hex(hex, kSha256Digits) && !(sha1_too && is_hex(hex, kSha1Digits))) {
    field.reject("expected a hash in hexadecimal, got " + field.preview());
  }
  return ascii_lower(hex);
}

RemoteFile parse_file(const Json& entry, const DownloadLimits& limits) {
  RemoteFile file;
  Json path = entry.at("rfilename");
  file.path = path.as_string();
  if (file.path.size() > limits.name_bytes) {
    path.reject(fmt::format(
        "a name of {} bytes; at most {} are allowed",
        file.path.size(),
        limits.name_bytes
    ));
  }
  auto size = entry.find("size");
  if (auto lfs = entry.find("lfs")) {
    file.content = {
        ContentId::Kind::sha256, hex_or_reject(lfs->at("sha256"), false)};
    size = lfs->has("size") ? lfs->find("size") : size;
  } else if (auto blob = entry.find("blobId")) {
    file.content = {ContentId::Kind::git_blob, hex_or_reject(*blob, true)};
  }
  if (size) {
    file.size = static_cast<uint64_t>(size->as_int(0));
  }
  return file;
}

}  // namespace

RepositoryListing parse_listing(
    std::string_view text, const std::string& name, const DownloadLimits& limits
) {
  Json root = Json::parse(text, name, kDepth);
  RepositoryListing listing;
  if (auto commit = root.find("sha")) {
    listing.commit = hex_or_reject(*commit, true);
  }
  Json siblings = root.at("siblings");
  if (siblings.size() > limits.listed_files) {
    siblings.reject(fmt::format(
        "{} files; at most {} are allowed", siblings.size(), limits.listed_files
    ));
  }
  std::unordered_set<std::string> seen;
  for (const Json& entry : siblings.elements()) {
    listing.files.push_back(parse_file(entry, limits));
    if (!seen.insert(listing.files.back().path).second) {
      entry.reject("a file that is listed twice: " + entry.preview());
    }
  }
  return listing;
}

}  // namespace mlxcel::hub
