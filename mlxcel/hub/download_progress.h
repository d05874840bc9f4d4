#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mlxcel::hub {

/// How far one file of a download is, in bytes.
struct FileProgress {
  std::string name;
  uint64_t size = 0;
  uint64_t done = 0;
};

/// Told of a download by the thread that called Downloader::download().
class DownloadProgress {
 public:
  virtual ~DownloadProgress() = default;

  /// Files and bytes that the revision has, those that are there included.
  virtual void begin(size_t files, uint64_t bytes) = 0;
  /// Some ten times a second: the files in work, and the bytes of all files
  /// that are in place or fetched.
  virtual void update(
      const std::vector<FileProgress>& active, uint64_t done
  ) = 0;
  /// A file is in place; `fetched` is false if it was there before.
  virtual void finished(const FileProgress& file, bool fetched) = 0;
  /// Something that takes long or went wrong and is tried again.
  virtual void note(const std::string& text) = 0;
  /// After the last call of the others, also when the download fails.
  virtual void end() = 0;
};

}  // namespace mlxcel::hub
