#include "mlxcel/hub/download/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"
#include "mlxcel/hub/download/answers.h"

namespace mlxcel::hub {

namespace {

constexpr size_t kPiece = 1 << 20;
constexpr uint64_t kWriteback = 8 << 20;
// Bytes for which a connection that then broke was worth its while.
constexpr uint64_t kReward = 64 << 10;
constexpr size_t kIdDigits = 16;
constexpr size_t kShownName = 200;
constexpr std::string_view kEnding = ".part";
constexpr long kPartial = 206;
constexpr long kRangeRefused = 416;

struct ContentRange {
  uint64_t first;
  uint64_t total;
};

// "bytes 5-9/10" (RFC 9110, 14.4).
std::optional<ContentRange> parse_content_range(std::string_view text) {
  size_t dash = text.find('-');
  size_t slash = text.find('/');
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit) || dash == std::string_view::npos ||
      slash == std::string_view::npos || dash > slash) {
    return std::nullopt;
  }
  auto first = parse_int(text.substr(kUnit.size(), dash - kUnit.size()));
  auto total = parse_int(text.substr(slash + 1));
  if (!first || !total || *first < 0 || *total < 0) {
    return std::nullopt;
  }
  return ContentRange{
      static_cast<uint64_t>(*first), static_cast<uint64_t>(*total)};
}

// What a file's descriptor outlives.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : fd_(os::open_regular(path, size_)) {}
  ~OpenFile() {
    os::close_file(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const {
    return fd_;
  }
  uint64_t size() const {
    return size_;
  }

 private:
  uint64_t size_ = 0;
  int fd_;
};

}  // namespace

std::string temporary_name(
    const RemoteFile& file,
    const std::string& repository,
    const std::string& revision
) {
  std::string content = file.content.kind == ContentId::Kind::none
                            ? repository + '@' + revision
                            : file.content.text();
  std::string id = sha256_hex(
      fmt::format("{}\n{}\n{}", content, file.size.value_or(0), file.path)
  );
  return fmt::format(
      ".{}.{}{}",
      base_name(file.path).substr(0, kShownName),
      id.substr(0, kIdDigits),
      kEnding
  );
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kEnding)) {
    return false;
  }
  name.remove_suffix(kEnding.size());
  size_t dot = name.rfind('.');
  return dot > 0 && is_hex(std::string(name.substr(dot + 1)), kIdDigits);
}

FileTransfer::FileTransfer(
    const TransferTask& task,
    HttpClient& client,
    Patience patience,
    const Patience::Note& note,
    std::atomic<uint64_t>& position
)
    : task_(task),
      client_(client),
      patience_(patience),
      note_(note),
      position_(position) {}

FileTransfer::~FileTransfer() {
  digest_.reset();
  if (fd_ >= 0) {
    os::close_file(fd_);
  }
}

void FileTransfer::reject(const std::string& reason) const {
  fail(
      ErrorCode::io, fmt::format("[download] {}: {}", task_.file.path, reason)
  );
}

bool FileTransfer::is_in_place() {
  os::FileInfo info;
  if (!os::stat_path(task_.target, info, false)) {
    return false;
  }
  if (info.directory) {
    reject("there is a directory of that name: " + task_.target);
  }
  if (info.regular && info.size == size() && has_right_content()) {
    return true;
  }
  position_.store(0);
  note_(task_.file.path + " is there but is not the hub's; fetching it again");
  return false;
}

bool FileTransfer::has_right_content() {
  OpenFile file(task_.target);
  Digest digest(task_.file.content, size());
  std::vector<char> buffer(kPiece);
  for (uint64_t at = 0; at < size(); position_.store(at)) {
    size_t count = static_cast<size_t>(std::min<uint64_t>(kPiece, size() - at));
    os::read_exact(file.fd(), buffer.data(), count, at, task_.target);
    digest.add(buffer.data(), count);
    at += count;
  }
  return digest.finish() == task_.file.content.hex;
}

void FileTransfer::open() {
  uint64_t there = 0;
  fd_ = os::open_own_file(task_.temporary, there);
  if (fd_ < 0) {
    // A link or a directory, or a file that someone else holds too.
    os::remove_path(task_.temporary);
    fd_ = os::create_own_file(task_.temporary);
  } else if (there > size()) {
    os::truncate_file(fd_, 0, task_.temporary);
    there = 0;
  }
  resumed_ = there > 0;
  written_ = there;
  begin_digest();
}

void FileTransfer::begin_digest() {
  digest_ = std::make_unique<BackgroundDigest>(
      task_.file.content, size(), fd_, task_.temporary
  );
  digest_->advance(written_);
  position_.store(written_);
}

void FileTransfer::start_over() {
  digest_.reset();
  os::truncate_file(fd_, 0, task_.temporary);
  written_ = 0;
  sent_to_disk_ = 0;
  resumed_ = false;
  etag_.clear();
  begin_digest();
}

void FileTransfer::run() {
  open();
  fetch_all();
  if (!verify() && resumed_) {
    note_(
        task_.file.path +
        ": put together from several answers, the content is wrong; "
        "fetching it again"
    );
    start_over();
    fetch_all();
    verify();
  }
  if (!verified_) {
    os::remove_path(task_.temporary);
    reject(fmt::format(
        "the hub states {}, what it sent has {}",
        task_.file.content.text(),
        found_
    ));
  }
  finish();
}

void FileTransfer::fetch_all() {
  while (written_ < size()) {
    uint64_t before = written_;
    try {
      attempt();
    } catch (const ConnectionError& error) {
      if (!error.again()) {
        throw;
      }
      if (written_ >= before + kReward) {
        patience_.reward();
      }
      patience_.wait(error);
    }
  }
}

void FileTransfer::attempt() {
  HttpRequest request;
  request.url = task_.url;
  request.token = task_.token;
  if (written_ > 0) {
    request.headers.push_back(fmt::format("Range: bytes={}-", written_));
    if (!etag_.empty()) {
      request.headers.push_back("If-Range: " + etag_);
    }
  }
  begun_ = false;
  HttpResponse response = client_.perform(
      request,
      [this](const HttpResponse& head, std::string_view piece) {
        accept(head, piece);
      }
  );
  if (response.status == kRangeRefused && written_ > 0) {
    start_over();
    throw ConnectionError(
        fmt::format(
            "[download] {}: the hub has no such range", task_.file.path
        ),
        true
    );
  }
  if (!response.success()) {
    Error error = refusal(response, task_.file.path, !task_.token.empty());
    if (!is_passing(response.status)) {
      throw error;
    }
    patience_.wait(error, asked_pause(response));
    return;
  }
  if (written_ < size()) {
    throw ConnectionError(
        fmt::format(
            "[download] {}: the body ended at {} of {} bytes",
            task_.file.path,
            written_,
            size()
        ),
        true
    );
  }
}

// Whether the body goes on where the file ends; else it is the whole file.
bool FileTransfer::check_start(const HttpResponse& response) {
  if (response.status != kPartial) {
    auto length = parse_int(response.header("content-length"));
    if (length && static_cast<uint64_t>(*length) != size()) {
      reject(
          fmt::format("the hub states {} bytes and sends {}", size(), *length)
      );
    }
    return false;
  }
  auto range = parse_content_range(response.header("content-range"));
  if (!range || range->first != written_ || range->total != size()) {
    reject(fmt::format(
        "asked for bytes from {} of {}, got {}",
        written_,
        size(),
        quote(response.header("content-range"))
    ));
  }
  return true;
}

void FileTransfer::accept(
    const HttpResponse& response, std::string_view piece
) {
  if (!begun_) {
    begun_ = true;
    if (!check_start(response) && written_ > 0) {
      start_over();
    }
    resumed_ = resumed_ || written_ > 0;
    std::string etag = response.header("etag");
    etag_ = etag.starts_with('"') ? etag : "";
  }
  if (piece.size() > size() - written_) {
    reject(fmt::format("the hub states {} bytes and sends more", size()));
  }
  os::write_all(fd_, piece.data(), piece.size(), task_.temporary);
  written_ += piece.size();
  digest_->advance(written_);
  // So that the disk has little left to do when the last byte has come.
  if (written_ - sent_to_disk_ >= kWriteback) {
    os::start_writeback(fd_, sent_to_disk_, written_ - sent_to_disk_);
    sent_to_disk_ = written_;
  }
  position_.store(written_);
}

bool FileTransfer::verify() {
  found_ = digest_->finish();
  verified_ = found_ == task_.file.content.hex;
  return verified_;
}

void FileTransfer::finish() {
  os::sync_file(fd_, task_.temporary);
  os::close_file(fd_);
  fd_ = -1;
  os::rename_file(task_.temporary, task_.target);
  os::sync_directory(parent_path(task_.target));
}

}  // namespace mlxcel::hub
