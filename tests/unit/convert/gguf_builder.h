#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "mlxcel/core/numbers.h"
#include "mlxcel/weights/convert/gguf/gguf.h"

namespace mlxcel::convert {

/// Builds GGUF files for tests and knows where each field of the header lies.
class GgufBuilder {
 public:
  struct Field {
    std::string name;
    size_t offset;
    size_t size;
  };

  uint32_t version = 3;
  uint64_t alignment = 32;

  template <typename T>
  void put(const std::string& key, GgufType type, T value) {
    std::string bytes;
    append(bytes, value);
    entries_.push_back({key, type, type, 0, bytes});
  }
  void put(const std::string& key, uint32_t value) {
    put(key, GgufType::uint32, value);
  }
  void put(const std::string& key, float value) {
    put(key, GgufType::float32, value);
  }
  void put(const std::string& key, bool value) {
    put(key, GgufType::boolean, static_cast<uint8_t>(value));
  }
  void put(const std::string& key, const char* value) {
    std::string bytes;
    append_string(bytes, value);
    entries_.push_back({key, GgufType::string, GgufType::string, 0, bytes});
  }
  void put(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& value : values) {
      append_string(bytes, value);
    }
    entries_.push_back(
        {key, GgufType::array, GgufType::string, values.size(), bytes}
    );
  }
  template <typename T>
  void put_array(
      const std::string& key, GgufType element, const std::vector<T>& values
  ) {
    std::string bytes;
    for (T value : values) {
      append(bytes, value);
    }
    entries_.push_back({key, GgufType::array, element, values.size(), bytes});
  }
  void remove(const std::string& key) {
    std::erase_if(entries_, [&](const Entry& e) { return e.key == key; });
  }
  template <typename T>
  void replace(const std::string& key, T value) {
    remove(key);
    put(key, value);
  }

  /// `shape` row-major.
  void tensor(
      const std::string& name,
      GgmlType type,
      const std::vector<int64_t>& shape,
      const std::string& data
  ) {
    tensors_.push_back({name, type, shape, data});
  }
  void remove_tensor(const std::string& name) {
    std::erase_if(tensors_, [&](const Tensor& t) { return t.name == name; });
  }
  const std::string& tensor_data(const std::string& name) const {
    for (const Tensor& tensor : tensors_) {
      if (tensor.name == name) {
        return tensor.data;
      }
    }
    throw std::out_of_range(name);
  }

  std::string build() {
    out_ = "GGUF";
    fields_.clear();
    field("version", version);
    field("tensor count", static_cast<uint64_t>(tensors_.size()));
    field("metadata count", static_cast<uint64_t>(entries_.size()));
    for (const Entry& entry : entries_) {
      build_entry(entry);
    }
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      std::string name = "tensor " + tensor.name;
      field(name + " name length", static_cast<uint64_t>(tensor.name.size()));
      out_ += tensor.name;
      field(name + " dimensions", static_cast<uint32_t>(tensor.shape.size()));
      for (auto it = tensor.shape.rbegin(); it != tensor.shape.rend(); ++it) {
        field(name + " dimension", *it);
      }
      field(name + " type", static_cast<uint32_t>(tensor.type));
      field(name + " offset", offset);
      offset += padded(tensor.data.size());
    }
    data_start_ = padded(out_.size());
    for (const Tensor& tensor : tensors_) {
      out_.resize(padded(out_.size()), '\0');
      out_ += tensor.data;
    }
    return out_;
  }
  /// Of the last build().
  const std::vector<Field>& fields() const {
    return fields_;
  }
  size_t data_start() const {
    return data_start_;
  }

 private:
  struct Entry {
    std::string key;
    GgufType type;
    GgufType element;
    uint64_t count;
    std::string bytes;
  };
  struct Tensor {
    std::string name;
    GgmlType type;
    std::vector<int64_t> shape;
    std::string data;
  };

  template <typename T>
  static void append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  static void append_string(std::string& out, const std::string& text) {
    append(out, static_cast<uint64_t>(text.size()));
    out += text;
  }
  template <typename T>
  void field(const std::string& name, T value) {
    fields_.push_back({name, out_.size(), sizeof(value)});
    append(out_, value);
  }
  size_t padded(size_t size) const {
    return (size + alignment - 1) / alignment * alignment;
  }

  void build_entry(const Entry& entry) {
    field(entry.key + " key length", static_cast<uint64_t>(entry.key.size()));
    out_ += entry.key;
    field(entry.key + " type", static_cast<uint32_t>(entry.type));
    if (entry.type == GgufType::array) {
      field(entry.key + " element type", static_cast<uint32_t>(entry.element));
      field(entry.key + " count", entry.count);
    }
    if (entry.element == GgufType::string && !entry.bytes.empty()) {
      fields_.push_back({entry.key + " string length", out_.size(), 8});
    }
    out_ += entry.bytes;
  }

  std::vector<Entry> entries_;
  std::vector<Tensor> tensors_;
  std::string out_;
  std::vector<Field> fields_;
  size_t data_start_ = 0;
};

/// Random blocks of a type, `count` elements, with scales around 0.01.
inline std::string random_blocks(
    GgmlType type, int64_t count, std::mt19937& random
) {
  const BlockLayout& layout = block_layout(type);
  std::string out;
  auto half = [&] {
    return float_to_f16(
        0.005f + 0.01f * static_cast<float>(random() % 1000) / 1000
    );
  };
  for (int64_t i = 0; i < count; i += layout.elements) {
    std::string block(static_cast<size_t>(layout.bytes), '\0');
    for (char& byte : block) {
      byte = static_cast<char>(random());
    }
    auto set = [&](size_t at, uint16_t bits) {
      std::memcpy(block.data() + at, &bits, sizeof(bits));
    };
    switch (type) {
      case GgmlType::f32: {
        float value = f16_to_float(half()) * (random() % 2 ? 8 : -8);
        std::memcpy(block.data(), &value, sizeof(value));
        break;
      }
      case GgmlType::f16:
        set(0, half());
        break;
      case GgmlType::bf16:
        set(0, float_to_bf16(f16_to_float(half())));
        break;
      case GgmlType::q6_k:
        set(208, half());
        break;
      case GgmlType::q4_1:
      case GgmlType::q5_1:
      case GgmlType::q4_k:
      case GgmlType::q5_k:
        set(2, half());
        [[fallthrough]];
      default:
        set(0, half());
    }
    out += block;
  }
  return out;
}

/// What tiny_model() builds.
struct TinyModel {
  std::string architecture = "llama";
  int64_t layers = 2;
  int64_t hidden = 64;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t intermediate = 96;
  int64_t vocab = 12;
  GgmlType type = GgmlType::q4_1;       // of the matrices
  GgmlType embedding = GgmlType::q8_0;  // and of the embedding
  bool output = false;                  // an untied head
  uint32_t seed = 1;
};

inline void put_tiny_tokenizer(GgufBuilder& gguf) {
  gguf.put("tokenizer.ggml.model", "gpt2");
  gguf.put("tokenizer.ggml.pre", "smollm");
  gguf.put(
      "tokenizer.ggml.tokens",
      std::vector<std::string>{
          "<|endoftext|>",
          "<|im_start|>",
          "<|im_end|>",
          "a",
          "b",
          "c",
          "\u0120",
          "\u010a",
          "ab",
          "\u0120a",
          "abc",
          "[PAD11]",
      }
  );
  gguf.put_array<int32_t>(
      "tokenizer.ggml.token_type",
      GgufType::int32,
      {3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 5}
  );
  gguf.put(
      "tokenizer.ggml.merges",
      std::vector<std::string>{"a b", "\u0120 a", "ab c"}
  );
  gguf.put("tokenizer.ggml.bos_token_id", uint32_t{1});
  gguf.put("tokenizer.ggml.eos_token_id", uint32_t{2});
  gguf.put("tokenizer.chat_template", "{{ messages[0]['content'] }}");
}

/// A whole model with random weights, made from the seed.
inline GgufBuilder tiny_model(const TinyModel& model = {}) {
  GgufBuilder gguf;
  std::mt19937 random(model.seed);
  const std::string& name = model.architecture;
  auto size = [&](const char* key, int64_t value) {
    gguf.put(name + "." + key, static_cast<uint32_t>(value));
  };
  bool head_dim = name == "qwen3" || name == "gemma";
  int64_t dim = model.hidden / model.heads;
  gguf.put("general.architecture", name.c_str());
  size("block_count", model.layers);
  size("context_length", 128);
  size("embedding_length", model.hidden);
  size("feed_forward_length", model.intermediate);
  size("attention.head_count", model.heads);
  size("attention.head_count_kv", model.kv_heads);
  if (head_dim) {
    size("attention.key_length", dim);
    size("attention.value_length", dim);
  }
  gguf.put(name + ".attention.layer_norm_rms_epsilon", 1e-5f);
  gguf.put(name + ".rope.freq_base", 10000.0f);
  put_tiny_tokenizer(gguf);

  auto matrix = [&](const std::string& tensor,
                    GgmlType type,
                    int64_t rows,
                    int64_t columns) {
    gguf.tensor(
        tensor + ".weight",
        type,
        {rows, columns},
        random_blocks(type, rows * columns, random)
    );
  };
  auto vector = [&](const std::string& tensor, int64_t count) {
    gguf.tensor(
        tensor,
        GgmlType::f32,
        {count},
        random_blocks(GgmlType::f32, count, random)
    );
  };
  matrix("token_embd", model.embedding, model.vocab, model.hidden);
  for (int64_t i = 0; i < model.layers; ++i) {
    std::string layer = "blk." + std::to_string(i) + ".";
    vector(layer + "attn_norm.weight", model.hidden);
    matrix(layer + "attn_q", model.type, model.hidden, model.hidden);
    matrix(layer + "attn_k", model.type, model.kv_heads * dim, model.hidden);
    matrix(layer + "attn_v", model.type, model.kv_heads * dim, model.hidden);
    if (name == "qwen2") {
      vector(layer + "attn_q.bias", model.hidden);
      vector(layer + "attn_k.bias", model.kv_heads * dim);
      vector(layer + "attn_v.bias", model.kv_heads * dim);
    }
    if (name == "qwen3") {
      vector(layer + "attn_q_norm.weight", dim);
      vector(layer + "attn_k_norm.weight", dim);
    }
    matrix(layer + "attn_output", model.type, model.hidden, model.hidden);
    vector(layer + "ffn_norm.weight", model.hidden);
    matrix(layer + "ffn_gate", model.type, model.intermediate, model.hidden);
    matrix(layer + "ffn_up", model.type, model.intermediate, model.hidden);
    matrix(layer + "ffn_down", model.type, model.hidden, model.intermediate);
  }
  vector("output_norm.weight", model.hidden);
  if (model.output) {
    matrix("output", model.embedding, model.vocab, model.hidden);
  }
  return gguf;
}

}  // namespace mlxcel::convert
