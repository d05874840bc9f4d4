// download_probe DIR [LIMIT=VALUE...]: fetches o/m from HF_ENDPOINT with other
// limits than the program has, so that tests of patience take no minute.

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/hub/download/snapshot.h"

namespace mlxcel {
namespace {

class Lines : public hub::DownloadProgress {
 public:
  void begin(size_t files, uint64_t bytes) override {
    fmt::print("begin {} {}\n", files, bytes);
  }
  void update(const std::vector<hub::FileProgress>& active, uint64_t done)
      override {
    size_t now = active.size();
    most_active_ = std::max(most_active_, now);
    backwards_ = backwards_ || done < done_;
    done_ = done;
  }
  void finished(const hub::FileProgress& file, bool fetched) override {
    fmt::print("{} {}\n", fetched ? "fetched" : "present", file.name);
  }
  void note(const std::string& text) override {
    fmt::print("note {}\n", text);
  }
  void end() override {
    fmt::print(
        "end {} {} {}\n",
        done_,
        most_active_,
        backwards_ ? "backwards" : "forwards"
    );
  }

 private:
  size_t most_active_ = 0;
  uint64_t done_ = 0;
  bool backwards_ = false;
};

hub::DownloadLimits limits_of(int count, char** words) {
  hub::DownloadLimits limits;
  std::map<std::string, double*> known{
      {"connect", &limits.connect_seconds},
      {"stall", &limits.stall_seconds},
      {"answer", &limits.answer_seconds},
      {"first_pause", &limits.first_pause},
      {"longest_pause", &limits.longest_pause},
  };
  for (int i = 0; i < count; ++i) {
    std::string word = words[i];
    size_t equals = std::min(word.find('='), word.size());
    std::string name = word.substr(0, equals);
    auto value = parse_double(word.substr(std::min(equals + 1, word.size())));
    if (!value) {
      fail(ErrorCode::usage, "[probe] LIMIT=VALUE expected, got " + word);
    }
    if (name == "tries") {
      limits.tries = static_cast<int>(*value);
    } else if (name == "parallel") {
      limits.parallel = static_cast<size_t>(*value);
    } else if (known.contains(name)) {
      *known[name] = *value;
    } else {
      fail(ErrorCode::usage, "[probe] no limit of the name " + name);
    }
  }
  return limits;
}

int run(int argc, char** argv) {
  if (argc < 2) {
    fail(ErrorCode::usage, "[probe] DIR expected");
  }
  Lines lines;
  hub::DownloadLimits limits = limits_of(argc - 2, argv + 2);
  hub::DownloadRequest request;
  request.repository = "o/m";
  request.directory = argv[1];
  hub::make_hub_downloader(
      hub::endpoint_from_environment(""),
      hub::ExtraTrust::from_environment(limits.extra_certificate_bytes),
      limits,
      lines
  )
      ->download(request);
  return 0;
}

}  // namespace
}  // namespace mlxcel

int main(int argc, char** argv) {
  try {
    return mlxcel::run(argc, argv);
  } catch (const mlxcel::Error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "error: {}\n", error.message());
    return 1;
  }
}
