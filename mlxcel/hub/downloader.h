#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mlxcel::hub {

/// The files of one revision of a repository, wanted in a directory.
struct DownloadRequest {
  std::string repository;  ///< owner/name
  std::string revision = "main";
  /// Files go below it, at their paths in the repository.
  std::filesystem::path directory;
  /// Globs that narrow what is taken; empty takes all that a model needs.
  std::vector<std::string> include;
  bool force = false;  ///< fetches files that are there already
};

class Downloader {
 public:
  virtual ~Downloader() = default;

  /// Returns once every selected file is in the directory, of the size and
  /// hash that the hub states. What was fetched before an error or a kill is
  /// kept and taken up by the next call.
  virtual void download(const DownloadRequest& request) = 0;
};

}  // namespace mlxcel::hub
