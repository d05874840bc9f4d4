// model.safetensors.index.json of strangers, in a directory with one shard.
// Anything but an Error is a fault.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/weights/shards.h"

namespace {

using namespace mlxcel;

// One empty tensor named "a".
constexpr std::string_view kShard(
    "\x3c\0\0\0\0\0\0\0"
    R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}      )",
    8 + 60
);

/// A folder in memory for one process, gone with it.
class Folder {
 public:
  Folder() : path_("/dev/shm/mlxcel_fuzz." + os::random_suffix()) {
    std::filesystem::create_directory(path_);
    std::ofstream(path_ + "/model.safetensors", std::ios::binary) << kShard;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const {
    return path_;
  }

 private:
  std::string path_;
};

template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::string& path = folder.path();
  std::ofstream(path + "/model.safetensors.index.json", std::ios::binary)
      .write(
          reinterpret_cast<const char*>(data),
          static_cast<std::streamsize>(size)
      );
  attempt([&] { tensor_names(path); });
  attempt([&] { list_shards(path); });
  attempt([&] { load_weights(path); });
  weight_bytes(path);
  return 0;
}
