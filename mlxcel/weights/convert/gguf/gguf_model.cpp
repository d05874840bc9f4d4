#include "mlxcel/weights/convert/gguf/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mlxcel/core/numbers.h"

namespace mlxcel::convert {

namespace {

constexpr int64_t kMaxLayers = 100000;
constexpr int64_t kMaxSize = int64_t{1} << 30;  // products of two fit

enum class Biases { none, query_key_value, optional };

// What llama.cpp's converter (conversion/*.py) and model code (src/models)
// say of an architecture.
struct Architecture {
  const char* name;
  const char* model_type;
  const char* class_name;
  const char* activation;
  bool interleaved;  // q and k rows permuted for the interleaved rotation
  bool norm_plus_one;
  bool head_norms;
  bool always_tied;
  bool needs_head_dim;
  Biases biases;
};

constexpr Architecture kArchitectures[] = {
    {"llama",
     "llama",
     "LlamaForCausalLM",
     "silu",
     true,
     false,
     false,
     false,
     false,
     Biases::optional},
    {"qwen2",
     "qwen2",
     "Qwen2ForCausalLM",
     "silu",
     false,
     false,
     false,
     false,
     false,
     Biases::query_key_value},
    {"qwen3",
     "qwen3",
     "Qwen3ForCausalLM",
     "silu",
     false,
     false,
     true,
     false,
     true,
     Biases::none},
    {"gemma",
     "gemma",
     "GemmaForCausalLM",
     "gelu_pytorch_tanh",
     false,
     true,
     false,
     true,
     true,
     Biases::none},
};

// A float32 as the shortest decimal that gives it back: 1e-5 rather than
// 9.999999747378752e-06.
double shortest(double value) {
  auto single = static_cast<float>(value);
  if (static_cast<double>(single) != value) {
    return value;
  }
  return parse_double(fmt::format("{}", single)).value_or(value);
}

class Planner {
 public:
  explicit Planner(const GgufFile& gguf) : gguf_(gguf) {}

  ModelPlan run();

 private:
  std::string key(const char* name) const {
    return fmt::format("{}.{}", architecture_->name, name);
  }
  int64_t size(const char* name) const {
    return gguf_.need_int(key(name), 1, kMaxSize);
  }

  void find_architecture();
  void check_keys() const;
  void read_sizes();
  void read_heads();
  void read_rope();
  std::optional<RopeScaling> metadata_scaling() const;

  void bind_tensors();
  void bind_layer(int64_t layer);
  void bind_attention(const std::string& from, const std::string& to);
  bool has(const std::string& name) const {
    return gguf_.find_tensor(name) != nullptr;
  }
  const GgufTensor& need(
      const std::string& name, const std::vector<int64_t>& shape
  );
  void add(
      const std::string& from,
      const std::string& to,
      std::vector<int64_t> shape,
      int64_t heads = 0
  );
  void add_norm(const std::string& from, const std::string& to, int64_t size);
  void add_projection(
      const std::string& from,
      const std::string& to,
      int64_t rows,
      int64_t columns,
      bool bias
  );
  void check_leftovers() const;

  const GgufFile& gguf_;
  const Architecture* architecture_ = nullptr;
  ModelPlan plan_{};
  std::set<std::string> used_;
};

void Planner::find_architecture() {
  std::string type = gguf_.find_string("general.type").value_or("model");
  if (type != "model") {
    gguf_.reject(
        "general.type",
        quote(type) + " is not supported, expected \"model\"",
        ErrorCode::unsupported
    );
  }
  if (gguf_.find_int("split.count", 0, UINT16_MAX).value_or(1) > 1) {
    gguf_.reject(
        "split.count",
        "a model in several files is not supported; join them with "
        "llama-gguf-split --merge",
        ErrorCode::unsupported
    );
  }
  std::string name = gguf_.need_string("general.architecture");
  for (const Architecture& known : kArchitectures) {
    if (name == known.name) {
      architecture_ = &known;
      return;
    }
  }
  gguf_.reject(
      "general.architecture",
      quote(name) + " is not supported, expected llama, qwen2, qwen3 or gemma",
      ErrorCode::unsupported
  );
}

// An unknown key may change the arithmetic: it is refused by name.
void Planner::check_keys() const {
  static const std::set<std::string, std::less<>> read = {
      "block_count",
      "context_length",
      "embedding_length",
      "feed_forward_length",
      "vocab_size",
      "attention.head_count",
      "attention.head_count_kv",
      "attention.key_length",
      "attention.value_length",
      "attention.layer_norm_rms_epsilon",
      "rope.dimension_count",
      "rope.freq_base",
      "rope.scale_linear",
      "rope.scaling.type",
      "rope.scaling.factor",
      "rope.scaling.original_context_length",
      "rope.scaling.yarn_beta_fast",
      "rope.scaling.yarn_beta_slow",
      // No part of the arithmetic of generation.
      "rope.scaling.finetuned",
      "pooling_type",
      "tensor_data_layout",
  };
  static const std::map<std::string, double, std::less<>> neutral = {
      {"expert_count", 0},
      {"expert_used_count", 0},
      {"attention.sliding_window", 0},
      {"rope.scaling.attn_factor", 1},
      {"rope.scaling.yarn_attn_factor", 1},
      {"rope.scaling.yarn_ext_factor", 1},
      {"rope.scaling.yarn_log_multiplier", 0},
  };
  std::string prefix = key("");
  for (const auto& [name, value] : gguf_.metadata()) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    std::string rest = name.substr(prefix.size());
    auto expected = neutral.find(rest);
    if (expected != neutral.end()) {
      double number = *gguf_.find_number(name);
      if (number != expected->second) {
        gguf_.reject(
            name,
            fmt::format("{} is not supported", number),
            ErrorCode::unsupported
        );
      }
    } else if (rest == "attention.causal") {
      if (!*gguf_.find_bool(name)) {
        gguf_.reject(name, "false is not supported", ErrorCode::unsupported);
      }
    } else if (!read.contains(rest)) {
      gguf_.reject(name, "not a known key", ErrorCode::unsupported);
    }
  }
}

void Planner::read_sizes() {
  ModelParameters& p = plan_.parameters;
  p.model_type = architecture_->model_type;
  p.class_name = architecture_->class_name;
  p.activation = architecture_->activation;
  p.layers = gguf_.need_int(key("block_count"), 1, kMaxLayers);
  p.hidden_size = size("embedding_length");
  p.intermediate_size = size("feed_forward_length");
  p.context = size("context_length");
  p.rms_norm_eps =
      shortest(gguf_.need_number(key("attention.layer_norm_rms_epsilon")));
  const GgufTensor* embedding = gguf_.find_tensor("token_embd.weight");
  if (embedding == nullptr) {
    gguf_.reject("tensor \"token_embd.weight\"", "missing");
  }
  p.vocab_size = embedding->shape[0];
  auto declared = gguf_.find_int(key("vocab_size"), 1, kMaxSize);
  if (declared && *declared != p.vocab_size) {
    gguf_.reject(
        key("vocab_size"),
        fmt::format(
            "{}, but token_embd.weight has {} rows", *declared, p.vocab_size
        )
    );
  }
}

void Planner::read_heads() {
  ModelParameters& p = plan_.parameters;
  p.heads = size("attention.head_count");
  p.kv_heads = gguf_.find_int(key("attention.head_count_kv"), 1, kMaxSize)
                   .value_or(p.heads);
  if (p.heads % p.kv_heads != 0) {
    gguf_.reject(
        key("attention.head_count_kv"),
        fmt::format("{} does not divide {} heads", p.kv_heads, p.heads)
    );
  }
  auto key_length = gguf_.find_int(key("attention.key_length"), 1, kMaxSize);
  auto value_length =
      gguf_.find_int(key("attention.value_length"), 1, kMaxSize);
  if (!key_length && p.hidden_size % p.heads != 0) {
    gguf_.reject(
        key("attention.head_count"),
        fmt::format("{} does not divide {}", p.heads, p.hidden_size)
    );
  }
  p.head_dim = key_length.value_or(p.hidden_size / p.heads);
  p.explicit_head_dim = key_length || architecture_->needs_head_dim;
  if (value_length.value_or(p.head_dim) != p.head_dim) {
    gguf_.reject(
        key("attention.value_length"),
        fmt::format("{}, but keys have {}", *value_length, p.head_dim),
        ErrorCode::unsupported
    );
  }
  int64_t rotated = gguf_.find_int(key("rope.dimension_count"), 1, kMaxSize)
                        .value_or(p.head_dim);
  if (rotated != p.head_dim || p.head_dim % 2 != 0) {
    gguf_.reject(
        key("rope.dimension_count"),
        fmt::format("{} of {} dimensions rotated", rotated, p.head_dim),
        ErrorCode::unsupported
    );
  }
}

std::optional<RopeScaling> Planner::metadata_scaling() const {
  std::string name = key("rope.scaling.factor");
  if (gguf_.find(name) == nullptr) {
    name = key("rope.scale_linear");  // its older form
  }
  double factor = gguf_.find_number(name).value_or(0);
  std::string type =
      gguf_.find_string(key("rope.scaling.type")).value_or("linear");
  if (type == "none" || factor == 0 || (type == "linear" && factor == 1)) {
    return std::nullopt;
  }
  if (type != "linear" && type != "yarn") {
    gguf_.reject(
        key("rope.scaling.type"),
        quote(type) + " is not supported",
        ErrorCode::unsupported
    );
  }
  if (factor < 0) {
    gguf_.reject(
        name, fmt::format("expected a positive number, got {}", factor)
    );
  }
  RopeScaling scaling{};
  scaling.type = type;
  scaling.factor = shortest(factor);
  if (type == "yarn") {
    scaling.original_context = size("rope.scaling.original_context_length");
    scaling.beta_fast = gguf_.find_number(key("rope.scaling.yarn_beta_fast"));
    scaling.beta_slow = gguf_.find_number(key("rope.scaling.yarn_beta_slow"));
  }
  return scaling;
}

void Planner::read_rope() {
  ModelParameters& p = plan_.parameters;
  p.rope_theta =
      shortest(gguf_.find_number(key("rope.freq_base")).value_or(10000));
  if (!(p.rope_theta > 0)) {
    gguf_.reject(key("rope.freq_base"), "expected a positive number");
  }
  p.rope_scaling = metadata_scaling();
  std::string name = "rope_freqs.weight";
  if (!architecture_->interleaved || !has(name)) {
    return;
  }
  const GgufTensor& tensor = need(name, {p.head_dim / 2});
  std::string field = "tensor " + quote(name);
  if (tensor.type != GgmlType::f32 || p.rope_scaling) {
    gguf_.reject(
        field,
        p.rope_scaling ? "stands beside another scaling of the rotation"
                       : "expected type F32",
        ErrorCode::unsupported
    );
  }
  std::vector<float> factors(static_cast<size_t>(p.head_dim / 2));
  for (size_t i = 0; i < factors.size(); ++i) {
    factors[i] = load_le<float>(gguf_.data(tensor) + i * sizeof(float));
  }
  if (std::all_of(factors.begin(), factors.end(), [](float f) {
        return f == 1;
      })) {
    return;
  }
  p.rope_scaling = fit_llama3_scaling(factors, p.rope_theta);
  if (!p.rope_scaling) {
    gguf_.reject(
        field,
        "these factors are not those of Llama 3's scaling",
        ErrorCode::unsupported
    );
  }
}

const GgufTensor& Planner::need(
    const std::string& name, const std::vector<int64_t>& shape
) {
  const GgufTensor* tensor = gguf_.find_tensor(name);
  std::string field = "tensor " + quote(name);
  if (tensor == nullptr) {
    gguf_.reject(field, "missing");
  }
  if (tensor->shape != shape) {
    gguf_.reject(
        field,
        fmt::format(
            "expected shape [{}], got [{}]",
            fmt::join(shape, ", "),
            fmt::join(tensor->shape, ", ")
        )
    );
  }
  if (shape.size() == 1 && block_layout(tensor->type).elements > 1) {
    gguf_.reject(
        field + " type",
        fmt::format("{} for a vector", block_layout(tensor->type).name),
        ErrorCode::unsupported
    );
  }
  used_.insert(name);
  return *tensor;
}

void Planner::add(
    const std::string& from,
    const std::string& to,
    std::vector<int64_t> shape,
    int64_t heads
) {
  const GgufTensor& tensor = need(from, shape);
  plan_.tensors.push_back({&tensor, to, 0, shape[0], heads, false});
}

void Planner::add_norm(
    const std::string& from, const std::string& to, int64_t size
) {
  add(from + ".weight", to + ".weight", {size});
  plan_.tensors.back().subtract_one = architecture_->norm_plus_one;
}

void Planner::add_projection(
    const std::string& from,
    const std::string& to,
    int64_t rows,
    int64_t columns,
    bool bias
) {
  add(from + ".weight", to + ".weight", {rows, columns});
  if (bias) {
    add(from + ".bias", to + ".bias", {rows});
  }
}

void Planner::bind_attention(const std::string& from, const std::string& to) {
  const ModelParameters& p = plan_.parameters;
  bool bias =
      architecture_->biases == Biases::query_key_value || p.attention_bias;
  int64_t query = p.heads * p.head_dim;
  int64_t key_value = p.kv_heads * p.head_dim;
  struct Part {
    const char* from;
    const char* to;
    int64_t rows;
    int64_t heads;
  };
  const Part parts[] = {
      {"attn_q", "q_proj", query, architecture_->interleaved ? p.heads : 0},
      {"attn_k",
       "k_proj",
       key_value,
       architecture_->interleaved ? p.kv_heads : 0},
      {"attn_v", "v_proj", key_value, 0},
  };
  std::string fused = from + "attn_qkv";
  int64_t first = 0;
  for (const Part& part : parts) {
    for (const char* kind : {".weight", ".bias"}) {
      bool vector = std::string_view(kind) == ".bias";
      if (vector && !bias) {
        continue;
      }
      std::string name = to + "self_attn." + part.to + kind;
      std::vector<int64_t> shape = {part.rows};
      if (!vector) {
        shape.push_back(p.hidden_size);
      }
      if (has(fused + kind)) {
        shape[0] = query + 2 * key_value;
        const GgufTensor& tensor = need(fused + kind, shape);
        plan_.tensors.push_back(
            {&tensor, name, first, part.rows, part.heads, false}
        );
      } else {
        add(from + part.from + kind, name, shape, part.heads);
      }
    }
    first += part.rows;
  }
  add_projection(
      from + "attn_output",
      to + "self_attn.o_proj",
      p.hidden_size,
      query,
      p.attention_bias
  );
  if (architecture_->head_norms) {
    add_norm(from + "attn_q_norm", to + "self_attn.q_norm", p.head_dim);
    add_norm(from + "attn_k_norm", to + "self_attn.k_norm", p.head_dim);
  }
}

void Planner::bind_layer(int64_t layer) {
  const ModelParameters& p = plan_.parameters;
  std::string from = fmt::format("blk.{}.", layer);
  std::string to = fmt::format("model.layers.{}.", layer);
  add_norm(from + "attn_norm", to + "input_layernorm", p.hidden_size);
  bind_attention(from, to);
  add_norm(from + "ffn_norm", to + "post_attention_layernorm", p.hidden_size);
  for (const char* name : {"gate", "up"}) {
    add_projection(
        fmt::format("{}ffn_{}", from, name),
        fmt::format("{}mlp.{}_proj", to, name),
        p.intermediate_size,
        p.hidden_size,
        p.mlp_bias
    );
  }
  add_projection(
      from + "ffn_down",
      to + "mlp.down_proj",
      p.hidden_size,
      p.intermediate_size,
      p.mlp_bias
  );
}

void Planner::bind_tensors() {
  ModelParameters& p = plan_.parameters;
  p.tied = architecture_->always_tied || !has("output.weight");
  if (architecture_->biases == Biases::optional) {
    // One switch for all biases of a kind, as in config.json.
    p.attention_bias = has("blk.0.attn_q.bias") || has("blk.0.attn_qkv.bias") ||
                       has("blk.0.attn_output.bias");
    p.mlp_bias = has("blk.0.ffn_down.bias");
  }
  add("token_embd.weight",
      "model.embed_tokens.weight",
      {p.vocab_size, p.hidden_size});
  for (int64_t layer = 0; layer < p.layers; ++layer) {
    bind_layer(layer);
  }
  add_norm("output_norm", "model.norm", p.hidden_size);
  if (!p.tied) {
    add("output.weight", "lm_head.weight", {p.vocab_size, p.hidden_size});
  }
}

void Planner::check_leftovers() const {
  for (const GgufTensor& tensor : gguf_.tensors()) {
    if (!used_.contains(tensor.name)) {
      gguf_.reject(
          "tensor " + quote(tensor.name),
          fmt::format("not a tensor of {}", architecture_->name),
          ErrorCode::unsupported
      );
    }
  }
}

ModelPlan Planner::run() {
  find_architecture();
  check_keys();
  read_sizes();
  read_heads();
  read_rope();
  bind_tensors();
  check_leftovers();
  return std::move(plan_);
}

}  // namespace

int64_t TensorPlan::source_row(int64_t row) const {
  if (heads == 0) {
    return first_row + row;
  }
  // LlamaModel.permute in llama.cpp's conversion/llama.py, undone: row 2i + s
  // of a head there is row s * half + i here.
  int64_t size = rows / heads;
  int64_t half = size / 2;
  int64_t in_head = row % size;
  return first_row + row - in_head + 2 * (in_head % half) + in_head / half;
}

ModelPlan plan_model(const GgufFile& gguf) {
  return Planner(gguf).run();
}

}  // namespace mlxcel::convert
