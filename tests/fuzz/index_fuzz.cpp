#include "mlxcel/hub/completeness.h"
#include "mlxcel/weights/shards.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/model_folder.h"

// model.safetensors.index.json, in a directory with one shard and links; what
// loading finds missing the hub finds missing too.

namespace {

// One empty tensor named "a".
constexpr std::string_view kShard(
    "\x3c\0\0\0\0\0\0\0"
    R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}      )",
    8 + 60
);

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mlxcel;
  static const fuzz::ModelFolder folder("model.safetensors.index.json");
  static const bool ready = [] {
    folder.write_beside("model.safetensors", kShard);
    // No shards by their names, or every index would be stale.
    folder.link_beside("out.link", "/etc/passwd");
    folder.link_beside("zero.link", "/dev/zero");
    folder.link_beside("gone.safetensors", "nothing");
    folder.link_beside("loop.safetensors", "loop.safetensors");
    return true;
  }();
  fuzz::require(ready);
  folder.write(fuzz::as_text(data, size));
  fuzz::attempt([&] { tensor_names(folder.path()); });
  fuzz::attempt([&] { list_shards(folder.path()); });
  fuzz::attempt([&] { load_weights(folder.path()); });
  fuzz::attempt([&] { list_tensors(folder.path()); });
  fuzz::attempt([&] {
    list_shards(folder.path());
    std::vector<std::string> lacks = {"config.json"};
    fuzz::require(hub::check_completeness(folder.path()).missing == lacks);
  });
  return 0;
}
