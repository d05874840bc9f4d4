#include "apps/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/model_words.h"
#include "apps/output.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/os_files.h"

namespace mlxcel::apps {

namespace {

constexpr int kStandardError = 2;
constexpr size_t kBar = 24;
constexpr int kUsualColumns = 80;
// Lines of files; the total has one of its own.
constexpr size_t kShownFiles = 8;
constexpr double kRateSeconds = 3;

using hub::FileProgress;

bool is_set(const char* name) {
  const char* value = os::environment(name);
  return value != nullptr && *value != '\0';
}

bool bars_wanted() {
  const char* ci = os::environment("CI");
  std::string_view in_ci = ci == nullptr ? "" : ci;
  return os::is_terminal(kStandardError) && !is_set("MLXCEL_NO_PROGRESS") &&
         !is_set("NO_COLOR") && in_ci != "true" && in_ci != "1";
}

// "fetched model.safetensors (1.20 GiB)".
std::string finished_line(const FileProgress& file, bool fetched) {
  return fmt::format(
      "{} {} ({})",
      fetched ? "fetched" : "present",
      file.name,
      size_words(file.size)
  );
}

class Lines : public hub::DownloadProgress {
 public:
  explicit Lines(bool on_output) : on_output_(on_output) {}

  void begin(size_t, uint64_t) override {}
  void update(const std::vector<FileProgress>&, uint64_t) override {}
  void finished(const FileProgress& file, bool fetched) override {
    std::string line = finished_line(file, fetched) + "\n";
    if (on_output_) {
      write_output(line);
    } else {
      fmt::print(stderr, "{}", line);
    }
  }
  void note(const std::string& text) override {
    fmt::print(stderr, "{}\n", text);
  }
  void end() override {}

 private:
  bool on_output_;
};

// Bytes a second over the last few seconds.
class Rate {
 public:
  double add(double time, uint64_t done) {
    if (samples_.empty() || time - samples_.back().time > 0.2) {
      samples_.push_back({time, done});
    }
    while (samples_.size() > 2 && time - samples_.front().time > kRateSeconds) {
      samples_.erase(samples_.begin());
    }
    double seconds = time - samples_.front().time;
    return seconds > 0 && done > samples_.front().done
               ? static_cast<double>(done - samples_.front().done) / seconds
               : 0;
  }

 private:
  struct Sample {
    double time;
    uint64_t done;
  };
  std::vector<Sample> samples_;
};

std::string time_words(double seconds) {
  auto whole = static_cast<uint64_t>(std::min(seconds, 359999.0));
  return whole < 3600
             ? fmt::format("{}:{:02}", whole / 60, whole % 60)
             : fmt::format(
                   "{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60
               );
}

std::string bar(uint64_t done, uint64_t size) {
  double part =
      size == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(size);
  auto full = std::min(kBar, static_cast<size_t>(part * kBar));
  return fmt::format(
      "[{}{}] {:3.0f}%",
      std::string(full, '='),
      std::string(kBar - full, ' '),
      100 * std::min(part, 1.0)
  );
}

class Bars : public hub::DownloadProgress {
 public:
  void begin(size_t files, uint64_t bytes) override {
    files_ = files;
    bytes_ = bytes;
    began_ = os::now();
  }

  void update(const std::vector<FileProgress>& active, uint64_t done) override {
    if (files_ == 0) {
      return;
    }
    std::string text = erase();
    size_t shown = std::min(active.size(), kShownFiles);
    for (size_t i = 0; i < shown; ++i) {
      text += line(file_line(active[i]));
    }
    text += line(total_line(done));
    drawn_ = shown + 1;
    put(text);
  }

  void finished(const FileProgress& file, bool fetched) override {
    finished_ += 1;
    fetched_ += fetched ? file.size : 0;
    put(erase() + finished_line(file, fetched) + "\n");
  }

  void note(const std::string& text) override {
    put(erase() + text + "\n");
  }

  void end() override {
    put(erase());
    if (files_ > 0 && finished_ == files_) {
      double seconds = std::max(os::now() - began_, 1e-3);
      fmt::print(
          stderr,
          "{} files, {}; fetched {} in {} ({}/s)\n",
          files_,
          size_words(bytes_),
          size_words(fetched_),
          time_words(seconds),
          size_words(
              static_cast<uint64_t>(static_cast<double>(fetched_) / seconds)
          )
      );
    }
    files_ = 0;
  }

 private:
  static void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

  // Takes back what was drawn last.
  std::string erase() {
    std::string text;
    for (; drawn_ > 0; --drawn_) {
      text += "\x1b[1A\x1b[2K";
    }
    return text;
  }

  // A line that doesn't wrap, or erasing would miss a part of it.
  static std::string line(std::string text) {
    int width = os::terminal_columns(kStandardError);
    auto limit = static_cast<size_t>(width > 0 ? width : kUsualColumns);
    while (!text.empty() && columns(text) >= limit) {
      text.pop_back();
    }
    return text + "\n";
  }

  static std::string file_line(const FileProgress& file) {
    return fmt::format(
        "{} {:>10}  {}",
        bar(file.done, file.size),
        size_words(file.done),
        shortened(file.name)
    );
  }

  std::string total_line(uint64_t done) {
    double rate = rate_.add(os::now(), done);
    std::string left;
    if (rate > 0 && done < bytes_) {
      left = fmt::format(
          "  {} left", time_words(static_cast<double>(bytes_ - done) / rate)
      );
    }
    return fmt::format(
        "{} {:>10}  of {}, {} of {} files  {}/s{}",
        bar(done, bytes_),
        size_words(done),
        size_words(bytes_),
        finished_,
        files_,
        size_words(static_cast<uint64_t>(rate)),
        left
    );
  }

  size_t files_ = 0;
  uint64_t bytes_ = 0;
  size_t finished_ = 0;
  uint64_t fetched_ = 0;
  double began_ = 0;
  size_t drawn_ = 0;
  Rate rate_;
};

}  // namespace

std::unique_ptr<hub::DownloadProgress> make_progress(bool lines_on_output) {
  if (bars_wanted()) {
    return std::make_unique<Bars>();
  }
  return std::make_unique<Lines>(lines_on_output);
}

}  // namespace mlxcel::apps
