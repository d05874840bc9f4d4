#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "mlxcel/hub/download/background_digest.h"
#include "mlxcel/hub/download/http.h"
#include "mlxcel/hub/download/metadata.h"
#include "mlxcel/hub/download/patience.h"

namespace mlxcel::hub {

/// One file, from the hub to its place in the directory.
struct TransferTask {
  RemoteFile file;  ///< with its size
  std::string url;
  std::string token;
  std::string target;     ///< path of the finished file
  std::string temporary;  ///< path of the unfinished one, beside it
};

/// The name of the unfinished file: that of the target and of the content, so
/// that another version of the file never continues it.
std::string temporary_name(
    const RemoteFile& file,
    const std::string& repository,
    const std::string& revision
);
/// Whether a name was made by temporary_name().
bool is_temporary_name(std::string_view name);

/// Fetches a file, going on where an earlier attempt ended.
class FileTransfer {
 public:
  /// `position` gets the bytes that are on disk. All of them outlive it.
  FileTransfer(
      const TransferTask& task,
      HttpClient& client,
      Patience patience,
      const Patience::Note& note,
      std::atomic<uint64_t>& position
  );
  ~FileTransfer();
  FileTransfer(const FileTransfer&) = delete;
  FileTransfer& operator=(const FileTransfer&) = delete;

  /// Whether the target is there, of the right size and content.
  bool is_in_place();
  /// Throws Error; what was fetched is kept for the next call, unless its
  /// content is wrong.
  void run();

 private:
  uint64_t size() const {
    return *task_.file.size;
  }
  bool has_right_content();
  void open();
  void begin_digest();
  void start_over();
  void fetch_all();
  void attempt();
  bool check_start(const HttpResponse& response);
  void accept(const HttpResponse& response, std::string_view piece);
  bool verify();
  void finish();
  [[noreturn]] void reject(const std::string& reason) const;

  const TransferTask& task_;
  HttpClient& client_;
  Patience patience_;
  const Patience::Note& note_;
  std::atomic<uint64_t>& position_;
  std::unique_ptr<BackgroundDigest> digest_;
  int fd_ = -1;
  uint64_t written_ = 0;
  uint64_t sent_to_disk_ = 0;  // of it
  bool resumed_ = false;       // from several answers
  bool verified_ = false;
  std::string found_;   // the hash of what was fetched
  bool begun_ = false;  // the body of this attempt
  std::string etag_;    // strong, of the server that sent what is there
};

}  // namespace mlxcel::hub
