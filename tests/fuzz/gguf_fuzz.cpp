#include "mlxcel/weights/convert/gguf/gguf.h"
#include "mlxcel/weights/convert/gguf/gguf_tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/model_folder.h"

// A GGUF file: its header, the extents of its tensors, its tokenizer.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mlxcel;
  static const fuzz::ModelFolder folder("model.gguf");
  folder.write(fuzz::as_text(data, size));
  fuzz::attempt([&] {
    auto file = convert::GgufFile::open(folder.path() + "/model.gguf");
    for (const auto& tensor : file.tensors()) {
      fuzz::require(tensor.offset <= size);
    }
    for (const auto& entry : file.metadata()) {
      const std::string& key = entry.first;
      fuzz::attempt([&] { file.find_int(key, -100, 100); });
      fuzz::attempt([&] { file.find_number(key); });
      fuzz::attempt([&] { file.find_bool(key); });
      fuzz::attempt([&] { file.find_string(key); });
      fuzz::attempt([&] { file.strings(key); });
      fuzz::attempt([&] { file.ints(key); });
      fuzz::attempt([&] { file.floats(key); });
      fuzz::attempt([&] { file.bytes(key); });
    }
    auto tokenizer = convert::read_tokenizer(file, 1000);
    convert::tokenizer_json(file, tokenizer);
  });
  return 0;
}
