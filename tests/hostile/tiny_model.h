#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "mlxcel/config/config.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/load_model.h"
#include "mlxcel/weights/synthetic.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {

/// A tiny checkpoint that loads as it is, to be broken.

inline constexpr const char* kConfig = R"({
  "model_type": "llama",
  "hidden_size": 64,
  "num_hidden_layers": 2,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "intermediate_size": 96,
  "vocab_size": 128,
  "max_position_embeddings": 256,
  "rms_norm_eps": 1e-5,
  "tie_word_embeddings": true
})";

// The config with some members replaced; null takes one away.
inline std::string patched(const std::string& patch) {
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(kConfig);
  config.merge_patch(nlohmann::ordered_json::parse(patch));
  return config.dump();
}

inline void write_weights(
    const TemporaryDirectory& dir, const std::string& text
) {
  Json config = parse_config(text, "config.json");
  SyntheticOptions options;
  options.bits = config.has("quantization") ? 4 : 0;
  options.group = 32;
  write_synthetic(
      descriptor(get_model_type(config)).family->tensors(config),
      dir.path(),
      options
  );
}

// A directory that loads as it is.
class Model {
 public:
  explicit Model(const std::string& config = kConfig) {
    write_weights(dir_, config);
    dir_.write("config.json", config);
  }
  const TemporaryDirectory& dir() const {
    return dir_;
  }
  std::string path() const {
    return dir_.path();
  }

 private:
  TemporaryDirectory dir_;
};

inline Checkpoint load(const std::string& path, bool reference = false) {
  LoadOptions options;
  options.backend.device = "cpu";
  options.backend.reference = reference;
  options.tokenizer = false;
  return load_model(path, options);
}

}  // namespace mlxcel
