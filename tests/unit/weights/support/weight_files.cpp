#include "tests/unit/weights/support/weight_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"

namespace mlxcel::test {

namespace fs = std::filesystem;

TempDir::TempDir() {
  path_ = (fs::temp_directory_path() / ("mlxcel-test-" + os::random_suffix()))
              .string();
  fs::create_directories(path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempDir::write(const std::string& name, std::string_view bytes)
    const {
  std::string path = at(name);
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

namespace {

std::vector<std::string>& captured() {
  static std::vector<std::string> lines;
  return lines;
}

class OffsetSource : public WeightSource {
 public:
  OffsetSource(const std::string& bytes, size_t offset)
      : storage_((bytes.size() + offset) / sizeof(uint64_t) + 1),
        bytes_(
            reinterpret_cast<std::byte*>(storage_.data()) + offset, bytes.size()
        ) {
    if (!bytes.empty()) {
      std::memcpy(
          reinterpret_cast<std::byte*>(storage_.data()) + offset,
          bytes.data(),
          bytes.size()
      );
    }
  }
  std::span<const std::byte> bytes() const override {
    return bytes_;
  }
  std::string origin() const override {
    return "memory";
  }

 private:
  std::vector<uint64_t> storage_;
  std::span<const std::byte> bytes_;
};

}  // namespace

LogCapture::LogCapture() {
  captured().clear();
  set_log_sink([](LogLevel level, const std::string& message) {
    if (level == LogLevel::warning) {
      captured().push_back(message);
    }
  });
}

LogCapture::~LogCapture() {
  set_log_sink(nullptr);
}

const std::vector<std::string>& LogCapture::lines() {
  return captured();
}

int LogCapture::count(std::string_view part) {
  int found = 0;
  for (const std::string& line : captured()) {
    found += line.find(part) != std::string::npos ? 1 : 0;
  }
  return found;
}

std::string raw_file(const std::string& header, const std::string& payload) {
  uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + payload;
}

std::string safetensors_file(
    const std::vector<FileTensor>& tensors, size_t padding
) {
  std::string header = "{";
  std::string payload;
  for (const FileTensor& tensor : tensors) {
    header += fmt::format(
        R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
        header.size() > 1 ? "," : "",
        tensor.name,
        tensor.dtype,
        fmt::join(tensor.shape, ","),
        payload.size(),
        payload.size() + tensor.bytes.size()
    );
    payload += tensor.bytes;
  }
  return raw_file(header + "}" + std::string(padding, ' '), payload);
}

Weight weight_at_offset(
    DType dtype, std::vector<int64_t> shape, std::string bytes, size_t offset
) {
  Weight weight;
  weight.dtype = dtype;
  weight.shape = std::move(shape);
  weight.source = std::make_shared<OffsetSource>(bytes, offset);
  return weight;
}

void expect_error(
    const std::function<void()>& action,
    ErrorCode code,
    const std::vector<std::string>& parts
) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code))
        << error.message();
    for (const std::string& part : parts) {
      EXPECT_NE(error.message().find(part), std::string::npos)
          << "\"" << part << "\" is not in: " << error.message();
    }
    EXPECT_LT(error.message().size(), 20000u);
    return;
  }
  ADD_FAILURE() << "no error";
}

}  // namespace mlxcel::test
