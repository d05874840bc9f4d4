#include "tests/fuzz/tokenizer_support.h"

// A table of ranks, as each family reads it.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mlxcel::fuzz::ModelFolder folder("tiktoken.model");
  static const char* const configs[] = {
      R"({"tokenizer_class": "QWenTokenizer"})",
      R"({"tokenizer_class": "HYTokenizer"})",
  };
  folder.write(mlxcel::fuzz::as_text(data, size));
  for (const char* config : configs) {
    folder.write_beside("tokenizer_config.json", config);
    mlxcel::fuzz::check_tokenizer(folder);
  }
  return 0;
}
