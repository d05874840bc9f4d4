#include "tests/fuzz/tokenizer_support.h"

// A tokenizer.model file of sentencepiece.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mlxcel::fuzz::ModelFolder folder("tokenizer.model");
  folder.write(mlxcel::fuzz::as_text(data, size));
  mlxcel::fuzz::check_tokenizer(folder);
  return 0;
}
