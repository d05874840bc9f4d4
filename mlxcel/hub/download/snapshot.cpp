#include "mlxcel/hub/download/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"
#include "mlxcel/hub/directory_lock.h"
#include "mlxcel/hub/download/crew.h"
#include "mlxcel/hub/download/patience.h"
#include "mlxcel/hub/download/selection.h"
#include "mlxcel/hub/download/transfer.h"
#include "mlxcel/hub/reference.h"

namespace mlxcel::hub {

namespace {

[[noreturn]] void reject(
    const std::string& subject, const std::string& reason
) {
  fail(
      ErrorCode::invalid_input,
      fmt::format("[download] {}: {}", subject, reason)
  );
}

void check_request(const DownloadRequest& request) {
  std::string_view repository = request.repository;
  size_t slash = repository.find('/');
  if (slash == std::string_view::npos ||
      !is_repository_part(repository.substr(0, slash)) ||
      !is_repository_part(repository.substr(slash + 1))) {
    fail(
        ErrorCode::usage,
        fmt::format(
            "[download] {}: expected owner/name", quote(request.repository)
        )
    );
  }
  check_revision(request.revision);
}

// The etag of a large file is its SHA-256 in quotes.
std::string unquoted(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return std::string(etag);
}

// Creates the directories between `root` and a file; none may be a link,
// which could lead elsewhere.
void make_parents(const std::string& root, const std::string& path) {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string folder = join_path(root, path.substr(0, slash));
    os::FileInfo info;
    if (!os::stat_path(folder, info, false)) {
      os::make_directories(folder);
    } else if (!info.directory) {
      fail(
          ErrorCode::io,
          fmt::format("[download] {}: not a directory, or a link", folder)
      );
    }
  }
}

// One call of download().
class Snapshot {
 public:
  Snapshot(
      const Endpoint& endpoint,
      const ExtraTrust& trust,
      const DownloadLimits& limits,
      DownloadProgress& progress,
      const DownloadRequest& request
  )
      : endpoint_(endpoint),
        trust_(trust),
        limits_(limits),
        progress_(progress),
        request_(request),
        root_(request.directory.string()) {}

  void run() {
    list();
    os::make_directories(root_);
    DirectoryLock lock(root_, tell_);
    refuse_foreign_weights();
    learn_sizes();
    place();
    remove_stale();
    require_space();
    fetch();
  }

 private:
  void list();
  void refuse_foreign_weights() const;
  void learn_sizes();
  void ask_size(HttpClient& client, const Crew& crew, RemoteFile& file);
  void place();
  void remove_stale();
  void require_space();
  void fetch();
  std::string url_of(const RemoteFile& file) const {
    return endpoint_.file_url(request_.repository, revision_, file.path);
  }

  const Endpoint& endpoint_;
  const ExtraTrust& trust_;
  const DownloadLimits& limits_;
  DownloadProgress& progress_;
  const DownloadRequest& request_;
  std::string root_;
  std::string revision_;
  std::set<std::string> listed_;  // paths of the repository
  std::vector<RemoteFile> files_;
  std::vector<TransferTask> tasks_;
  const Patience::Note tell_ = [this](const std::string& text) {
    progress_.note(text);
  };
};

void Snapshot::list() {
  std::atomic<bool> cancelled = false;
  HttpClient client(limits_, trust_, cancelled);
  HttpRequest ask;
  ask.url = endpoint_.metadata_url(request_.repository, request_.revision);
  ask.token = endpoint_.token;
  ask.seconds = limits_.answer_seconds;
  std::string subject =
      fmt::format("{} ({})", request_.repository, request_.revision);
  std::string body;
  fetch_answer(
      client,
      ask,
      subject,
      limits_.metadata_bytes,
      body,
      Patience(limits_, cancelled, tell_)
  );
  RepositoryListing listing =
      parse_listing(body, "the list of " + subject, limits_);
  // A push in between can't mix versions.
  revision_ = listing.commit.empty() ? request_.revision : listing.commit;
  std::map<std::string, RemoteFile> by_path;
  std::vector<std::string> paths;
  for (RemoteFile& file : listing.files) {
    paths.push_back(file.path);
    listed_.insert(file.path);
    by_path[file.path] = std::move(file);
  }
  std::vector<std::string> unsafe;
  for (const std::string& path :
       select_files(paths, request_.include, unsafe)) {
    files_.push_back(by_path[path]);
  }
  for (const std::string& path : unsafe) {
    progress_.note("left out for its unsafe name: " + quote(path));
  }
  if (files_.empty()) {
    fail(
        ErrorCode::not_found,
        fmt::format("[download] {}: has no file that is wanted", subject)
    );
  }
  if (files_.size() > limits_.selected_files) {
    reject(
        subject,
        fmt::format(
            "{} files are wanted; at most {} are allowed",
            files_.size(),
            limits_.selected_files
        )
    );
  }
}

// Weights that another revision or model left would be loaded with these.
void Snapshot::refuse_foreign_weights() const {
  for (const std::string& name : os::list_directory(root_)) {
    bool weights = name.ends_with(".safetensors") ||
                   name.ends_with(".safetensors.index.json");
    if (weights && !listed_.contains(name)) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[download] {}: {} {} has no such file; remove it, it would be "
              "taken for a part of the model",
              join_path(root_, name),
              request_.repository,
              request_.revision
          )
      );
    }
  }
}

void Snapshot::learn_sizes() {
  std::vector<RemoteFile*> unknown;
  std::vector<FileProgress> rows;
  for (RemoteFile& file : files_) {
    if (!file.size) {
      unknown.push_back(&file);
      rows.push_back({file.path});
    }
  }
  Crew crew(rows, limits_, trust_, progress_);
  crew.run(0, unknown.size(), false, [&](HttpClient& client, size_t i) {
    Patience::Note note = [&](const std::string& text) { crew.note(text); };
    RemoteFile& file = *unknown[i];
    HttpRequest ask;
    ask.url = url_of(file);
    ask.head = true;
    ask.token = endpoint_.token;
    ask.leave_origin = false;
    ask.seconds = limits_.answer_seconds;
    std::string body;
    HttpResponse answer = fetch_answer(
        client,
        ask,
        file.path,
        0,
        body,
        Patience(limits_, crew.cancelled(), note)
    );
    std::string stated = answer.header("x-linked-size");
    auto size = parse_int(
        stated.empty() && answer.success() ? answer.header("content-length")
                                           : stated
    );
    if (!size || *size < 0) {
      reject(file.path, "the hub does not state its size");
    }
    file.size = static_cast<uint64_t>(*size);
    std::string etag = unquoted(answer.header("x-linked-etag"));
    if (file.content.kind == ContentId::Kind::none && is_hex(etag, 64)) {
      file.content = {ContentId::Kind::sha256, etag};
    }
    return false;
  });
}

void Snapshot::place() {
  for (const RemoteFile& file : files_) {
    make_parents(root_, file.path);
    TransferTask task;
    task.file = file;
    task.url = url_of(file);
    task.token = endpoint_.token;
    task.target = join_path(root_, file.path);
    task.temporary = join_path(
        parent_path(task.target),
        temporary_name(file, request_.repository, revision_)
    );
    tasks_.push_back(std::move(task));
  }
}

// What another version of a file left behind. A part that can be continued is
// kept whatever its age.
void Snapshot::remove_stale() {
  std::set<std::string> wanted;
  std::set<std::string> folders;
  for (const TransferTask& task : tasks_) {
    wanted.insert(task.temporary);
    folders.insert(parent_path(task.target));
  }
  for (const std::string& folder : folders) {
    for (const std::string& name : os::list_directory(folder)) {
      std::string path = join_path(folder, name);
      if (is_temporary_name(name) && !wanted.contains(path) &&
          os::seconds_since_written(path).value_or(0) > limits_.stale_seconds) {
        os::remove_path(path);
      }
    }
  }
}

void Snapshot::require_space() {
  uint64_t needed = 0;
  for (const TransferTask& task : tasks_) {
    uint64_t size = *task.file.size;
    os::FileInfo info;
    bool there = os::stat_path(task.target, info, false) && info.regular &&
                 info.size == size && !request_.force;
    uint64_t begun = os::stat_path(task.temporary, info, false) && info.regular
                         ? info.size
                         : 0;
    auto sum = checked_add(needed, there || begun > size ? 0 : size - begun);
    if (!sum) {
      reject(task.file.path, "sizes that no disk has");
    }
    needed = *sum;
  }
  auto free = os::free_space(root_);
  if (free && needed > *free) {
    fail(
        ErrorCode::io,
        fmt::format(
            "[download] {}: {} bytes are needed, {} are free",
            root_,
            needed,
            *free
        )
    );
  }
}

void Snapshot::fetch() {
  std::vector<FileProgress> rows;
  uint64_t total = 0;
  size_t weights = 0;
  for (const TransferTask& task : tasks_) {
    rows.push_back({task.file.path, *task.file.size});
    total += *task.file.size;
    weights += task.file.path.ends_with(".safetensors") ? 1 : 0;
  }
  Crew crew(rows, limits_, trust_, progress_);
  Patience::Note note = [&](const std::string& text) { crew.note(text); };
  auto job = [&](HttpClient& client, size_t i) {
    FileTransfer transfer(
        tasks_[i],
        client,
        Patience(limits_, crew.cancelled(), note),
        note,
        crew.position(i)
    );
    if (!request_.force && transfer.is_in_place()) {
      return false;
    }
    transfer.run();
    return true;
  };
  progress_.begin(rows.size(), total);
  // A directory with weights and without the index would look complete.
  crew.run(0, rows.size() - weights, true, job);
  crew.run(rows.size() - weights, rows.size(), true, job);
}

class HubDownloader : public Downloader {
 public:
  HubDownloader(
      Endpoint endpoint,
      ExtraTrust trust,
      const DownloadLimits& limits,
      DownloadProgress& progress
  )
      : endpoint_(std::move(endpoint)),
        trust_(std::move(trust)),
        limits_(limits),
        progress_(progress) {}

  void download(const DownloadRequest& request) override {
    struct End {
      DownloadProgress& progress;
      ~End() {
        progress.end();
      }
    } end{progress_};
    check_request(request);
    if (!endpoint_.remark.empty()) {
      progress_.note(endpoint_.remark);
    }
    Snapshot(endpoint_, trust_, limits_, progress_, request).run();
  }

 private:
  Endpoint endpoint_;
  ExtraTrust trust_;
  DownloadLimits limits_;
  DownloadProgress& progress_;
};

}  // namespace

std::unique_ptr<Downloader> make_hub_downloader(
    Endpoint endpoint,
    ExtraTrust trust,
    const DownloadLimits& limits,
    DownloadProgress& progress
) {
  return std::make_unique<HubDownloader>(
      std::move(endpoint), std::move(trust), limits, progress
  );
}

std::unique_ptr<Downloader> make_hub_downloader(
    const std::string& token, DownloadProgress& progress
) {
  DownloadLimits limits;
  return make_hub_downloader(
      endpoint_from_environment(token),
      ExtraTrust::from_environment(limits.extra_certificate_bytes),
      limits,
      progress
  );
}

}  // namespace mlxcel::hub
