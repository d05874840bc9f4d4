#include "mlxcel/weights/convert/gguf/convert_gguf.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "mlxcel/core/json.h"
#include "mlxcel/core/os.h"
#include "mlxcel/weights/convert/gguf/gguf_dequant.h"
#include "mlxcel/weights/convert/gguf/gguf_model.h"
#include "tests/unit/convert/gguf_builder.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::convert {

namespace {

// A tensor of the output as float32.
struct Output {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;

  float at(size_t i) const {
    if (dtype == "F32") {
      return load_le<float>(bytes.data() + 4 * i);
    }
    auto bits = load_le<uint16_t>(bytes.data() + 2 * i);
    return dtype == "F16" ? f16_to_float(bits) : bf16_to_float(bits);
  }
};

std::map<std::string, Output> read_safetensors(const std::string& path) {
  std::string bytes = read_file(path, 1 << 24);
  auto length = load_le<uint64_t>(bytes.data());
  Json header = Json::parse(std::string_view(bytes).substr(8, length), path);
  std::map<std::string, Output> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      continue;
    }
    Output output;
    output.dtype = entry.at("dtype").as_string();
    for (const Json& size : entry.at("shape").elements()) {
      output.shape.push_back(size.as_int());
    }
    auto offsets = entry.at("data_offsets").elements();
    auto begin = static_cast<size_t>(offsets[0].as_int());
    auto end = static_cast<size_t>(offsets[1].as_int());
    output.bytes = bytes.substr(8 + length + begin, end - begin);
    tensors[name] = output;
  }
  return tensors;
}

// The tensor as values, put together from its planes if it has them.
std::vector<float> values_of(
    const std::map<std::string, Output>& tensors, const std::string& name
) {
  const Output& weight = tensors.at(name);
  std::string module = name.substr(0, name.rfind('.'));
  std::vector<float> values;
  auto scales = tensors.find(module + ".scales");
  if (scales == tensors.end()) {
    for (int64_t i = 0; i < static_cast<int64_t>(weight.bytes.size()) /
                                (weight.dtype == "F32" ? 4 : 2);
         ++i) {
      values.push_back(weight.at(static_cast<size_t>(i)));
    }
    return values;
  }
  const Output& biases = tensors.at(module + ".biases");
  EXPECT_EQ(weight.dtype, "U32");
  EXPECT_EQ(biases.shape, scales->second.shape);
  int64_t groups = scales->second.shape[0] * scales->second.shape[1];
  int64_t bits = weight.shape[1] / scales->second.shape[1];
  EXPECT_EQ(weight.bytes.size(), static_cast<size_t>(groups * bits * 4));
  for (int64_t i = 0; i < groups * kGroup; ++i) {
    int code = 0;
    for (int64_t b = 0; b < bits; ++b) {
      auto at = static_cast<size_t>(i * bits + b);
      code |= (weight.bytes[at / 8] >> (at % 8) & 1) << b;
    }
    auto group = static_cast<size_t>(i / kGroup);
    values.push_back(
        scales->second.at(group) * static_cast<float>(code) + biases.at(group)
    );
  }
  return values;
}

class ConvertTest : public ::testing::Test {
 protected:
  ConvertReport convert(
      GgufBuilder builder, const ConvertOptions& options = {}
  ) {
    source_ = directory_.write("m.gguf", builder.build());
    out_ = directory_ / "out";
    ConvertReport report = convert_gguf(source_, out_, options);
    if (file_exists(out_ + "/model.safetensors")) {
      tensors_ = read_safetensors(out_ + "/model.safetensors");
    }
    return report;
  }

  // What the source holds for a tensor of the output, by ggml's formulas.
  std::vector<float> expected(const std::string& name) const {
    GgufFile gguf = GgufFile::open(source_);
    ModelPlan plan = plan_model(gguf);
    for (const TensorPlan& tensor : plan.tensors) {
      if (tensor.name != name) {
        continue;
      }
      int64_t count = tensor.source->rows() * tensor.source->columns();
      std::vector<float> all(static_cast<size_t>(count));
      dequantize(
          tensor.source->type, gguf.data(*tensor.source), count, all.data()
      );
      std::vector<float> values;
      for (int64_t row = 0; row < tensor.rows; ++row) {
        for (int64_t i = 0; i < tensor.columns(); ++i) {
          values.push_back(all[static_cast<size_t>(
              tensor.source_row(row) * tensor.columns() + i
          )]);
        }
      }
      return values;
    }
    throw std::out_of_range(name);
  }

  double relative_error(const std::string& name) const {
    std::vector<float> wanted = expected(name);
    std::vector<float> got = values_of(tensors_, name);
    EXPECT_EQ(got.size(), wanted.size()) << name;
    double error = 0;
    double sum = 0;
    for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
      error += std::pow(static_cast<double>(got[i]) - wanted[i], 2);
      sum += std::pow(wanted[i], 2);
    }
    return std::sqrt(error / sum);
  }
  std::vector<std::string> left_over() const {
    std::vector<std::string> names = os::list_directory(directory_.path());
    std::erase(names, "m.gguf");
    return names;
  }
  Json config() const {
    return Json::parse_file(out_ + "/config.json", 1 << 20);
  }

  TemporaryDirectory directory_;
  std::string source_;
  std::string out_;
  std::map<std::string, Output> tensors_;
};

const char* const kMatrices[] = {
    "model.embed_tokens.weight",
    "model.layers.0.self_attn.q_proj.weight",
    "model.layers.1.self_attn.k_proj.weight",
    "model.layers.1.mlp.down_proj.weight",
};

}  // namespace

TEST_F(ConvertTest, BlocksOf32KeepEveryValue) {
  struct Case {
    GgmlType type;
    const char* name;
    int bits;
  };
  for (const Case& c : std::vector<Case>{
           {GgmlType::q4_0, "Q4_0", 4},
           {GgmlType::q4_1, "Q4_1", 4},
           {GgmlType::q5_0, "Q5_0", 5},
           {GgmlType::q5_1, "Q5_1", 5},
           {GgmlType::q8_0, "Q8_0", 8},
       }) {
    ConvertReport report = convert(
        tiny_model({.type = c.type, .embedding = c.type}), {.force = true}
    );
    for (const char* name : kMatrices) {
      EXPECT_EQ(relative_error(name), 0) << c.name << " " << name;
    }
    EXPECT_EQ(relative_error("model.layers.1.input_layernorm.weight"), 0);
    EXPECT_EQ(report.types[0].source, c.name);
    EXPECT_EQ(report.types[0].relative_rms, 0);
    Json quantization = config().at("quantization");
    EXPECT_EQ(quantization.at("bits").as_int(), c.bits);
    EXPECT_EQ(quantization.at("group_size").as_int(), 32);
    EXPECT_EQ(quantization.at("mode").as_string(), "affine");
    EXPECT_EQ(quantization.size(), 3u);
    EXPECT_EQ(tensors_.at("model.embed_tokens.scales").dtype, "F16");
  }
}

TEST_F(ConvertTest, KTypesAreNearAndReportTheirError) {
  struct Case {
    GgmlType type;
    const char* name;
    int64_t bits;
    double bound;
  };
  for (const Case& c : std::vector<Case>{
           {GgmlType::q4_k, "Q4_K", 4, 1e-3},
           {GgmlType::q5_k, "Q5_K", 5, 1e-3},
           {GgmlType::q6_k, "Q6_K", 8, 6e-3},
       }) {
    ConvertReport report = convert(
        tiny_model(
            {.hidden = 256,
             .intermediate = 512,
             .type = c.type,
             .embedding = c.type}
        ),
        {.force = true}
    );
    double worst = 0;
    for (const char* name : kMatrices) {
      double error = relative_error(name);
      EXPECT_GT(error, 0) << c.name << " " << name;
      EXPECT_LT(error, c.bound) << c.name << " " << name;
      worst = std::max(worst, error);
    }
    EXPECT_EQ(report.types[0].source, c.name);
    EXPECT_GT(report.types[0].relative_rms, worst / 4) << c.name;
    EXPECT_LT(report.types[0].relative_rms, worst * 4) << c.name;
    EXPECT_EQ(config().at("quantization").at("bits").as_int(), c.bits);
  }
}

TEST_F(ConvertTest, DenseTypesStay) {
  for (GgmlType type : {GgmlType::f16, GgmlType::bf16, GgmlType::f32}) {
    ConvertReport report =
        convert(tiny_model({.type = type, .embedding = type}), {.force = true});
    for (const char* name : kMatrices) {
      EXPECT_EQ(relative_error(name), 0);
      EXPECT_EQ(tensors_.at(name).dtype, block_layout(type).name);
    }
    EXPECT_FALSE(config().has("quantization"));
    // The norms' values are such that float16 holds them, bfloat16 not.
    EXPECT_EQ(
        tensors_.at("model.norm.weight").dtype,
        type == GgmlType::f16 ? "F16" : "F32"
    );
    EXPECT_EQ(relative_error("model.norm.weight"), 0);
  }
}

TEST_F(ConvertTest, DenseOptionDecodes) {
  ConvertReport report = convert(tiny_model(), {.dense = true});
  EXPECT_FALSE(config().has("quantization"));
  EXPECT_EQ(config().at("torch_dtype").as_string(), "float16");
  EXPECT_EQ(tensors_.at("model.embed_tokens.weight").dtype, "F16");
  EXPECT_EQ(tensors_.count("model.embed_tokens.scales"), 0u);
  for (const char* name : kMatrices) {
    EXPECT_LT(relative_error(name), 5e-4);
  }
  // Q4_1 adds a product and a minimum: more bits than float16 has.
  EXPECT_EQ(report.types.back().source, "Q4_1");
  EXPECT_GT(report.types.back().relative_rms, 0);
}

TEST_F(ConvertTest, ModulesThatDifferAreNamedInTheConfig) {
  GgufBuilder builder = tiny_model({.output = true});
  builder.remove_tensor("output.weight");
  std::mt19937 random(7);
  builder.tensor(
      "output.weight",
      GgmlType::f16,
      {12, 64},
      random_blocks(GgmlType::f16, 12 * 64, random)
  );
  convert(builder);
  Json quantization = config().at("quantization");
  EXPECT_EQ(quantization.at("bits").as_int(), 4);
  EXPECT_EQ(
      quantization.at("model.embed_tokens").raw().dump(),
      R"({"group_size":32,"bits":8,"mode":"affine"})"
  );
  EXPECT_FALSE(quantization.at("lm_head").as_bool());
  EXPECT_FALSE(config().at("tie_word_embeddings").as_bool());
  EXPECT_EQ(quantization.size(), 5u);
}

// -8 d of a large d passes float16's range: float32 scales keep the values.
TEST_F(ConvertTest, ScalesPastFloat16AreWrittenAsFloat32) {
  GgufBuilder builder =
      tiny_model({.type = GgmlType::q4_0, .embedding = GgmlType::q4_0});
  std::string blocks = builder.tensor_data("token_embd.weight");
  uint16_t large = float_to_f16(20000);
  std::memcpy(blocks.data() + 18, &large, sizeof(large));
  builder.remove_tensor("token_embd.weight");
  builder.tensor("token_embd.weight", GgmlType::q4_0, {12, 64}, blocks);
  ConvertReport report = convert(builder);
  EXPECT_EQ(tensors_.at("model.embed_tokens.scales").dtype, "F32");
  EXPECT_EQ(tensors_.at("model.embed_tokens.biases").dtype, "F32");
  EXPECT_EQ(relative_error("model.embed_tokens.weight"), 0);
  EXPECT_EQ(tensors_.at("model.layers.0.mlp.up_proj.scales").dtype, "F16");
}

TEST_F(ConvertTest, KScalesPastFloat16AreWrittenAsFloat32) {
  for (GgmlType type : {GgmlType::q4_k, GgmlType::q6_k}) {
    GgufBuilder builder = tiny_model(
        {.hidden = 256, .intermediate = 256, .type = type, .embedding = type}
    );
    std::string blocks = builder.tensor_data("token_embd.weight");
    uint16_t large = float_to_f16(30000);
    std::memcpy(blocks.data() + (type == GgmlType::q4_k ? 0 : 208), &large, 2);
    builder.remove_tensor("token_embd.weight");
    builder.tensor("token_embd.weight", type, {12, 256}, blocks);
    convert(builder, {.force = true});
    EXPECT_EQ(tensors_.at("model.embed_tokens.scales").dtype, "F32");
    EXPECT_EQ(tensors_.at("model.layers.0.mlp.up_proj.scales").dtype, "F16");
    double error = relative_error("model.embed_tokens.weight");
    EXPECT_LT(error, type == GgmlType::q4_k ? 1e-12 : 6e-3);
  }
}

TEST_F(ConvertTest, DenseValuesPastFloat16AreWrittenAsFloat32) {
  GgufBuilder builder = tiny_model();
  std::string blocks = builder.tensor_data("token_embd.weight");
  uint16_t large = float_to_f16(20000);
  std::memcpy(blocks.data(), &large, sizeof(large));
  builder.remove_tensor("token_embd.weight");
  builder.tensor("token_embd.weight", GgmlType::q8_0, {12, 64}, blocks);
  convert(builder, {.dense = true});
  EXPECT_EQ(tensors_.at("model.embed_tokens.weight").dtype, "F32");
  EXPECT_EQ(relative_error("model.embed_tokens.weight"), 0);
}

TEST_F(ConvertTest, GemmaNormsLoseTheirOne) {
  GgufBuilder builder = tiny_model({.architecture = "gemma"});
  convert(builder);
  std::vector<float> stored = expected("model.norm.weight");
  std::vector<float> written = values_of(tensors_, "model.norm.weight");
  ASSERT_EQ(written.size(), stored.size());
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(written[i], stored[i] - 1);
  }
}

TEST_F(ConvertTest, OtherArchitecturesConvert) {
  for (const char* name : {"qwen2", "qwen3", "gemma"}) {
    convert(tiny_model({.architecture = name}), {.force = true});
    EXPECT_EQ(config().at("model_type").as_string(), name);
    EXPECT_EQ(relative_error("model.layers.0.self_attn.q_proj.weight"), 0)
        << name;
  }
}

TEST_F(ConvertTest, WritesWhatALoaderReads) {
  ConvertReport report = convert(tiny_model());
  EXPECT_EQ(
      os::list_directory(out_),
      (std::vector<std::string>{
          "config.json",
          "generation_config.json",
          "model.safetensors",
          "tokenizer.json",
          "tokenizer_config.json",
      })
  );
  std::vector<std::string> files = report.files;
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, os::list_directory(out_));
  EXPECT_EQ(left_over(), std::vector<std::string>{"out"});
  Json json = config();
  EXPECT_EQ(json.at("bos_token_id").as_int(), 1);
  EXPECT_EQ(json.at("eos_token_id").as_int(), 2);
  EXPECT_EQ(json.at("torch_dtype").as_string(), "float16");
  EXPECT_EQ(report.architecture, "llama");
  EXPECT_EQ(report.tensors, 20);
  EXPECT_EQ(
      report.parameters,
      12u * 64 + 5u * 64 + 2u * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64)
  );
  EXPECT_NE(report.describe().find("without loss"), std::string::npos);
}

TEST_F(ConvertTest, ATokenizerNeedsNoModel) {
  GgufBuilder gguf;
  gguf.put("general.architecture", "llama");
  gguf.put("llama.context_length", uint32_t{77});
  put_tiny_tokenizer(gguf);
  std::string file = directory_.write("vocabulary.gguf", gguf.build());
  std::string out = directory_ / "vocabulary";
  EXPECT_ERROR(convert_gguf(file, out, {}), "vocabulary.gguf");
  ConvertOptions options;
  options.tokenizer_only = true;
  ConvertReport report = convert_gguf(file, out, options);
  EXPECT_EQ(report.tokens, 12);
  EXPECT_NE(report.describe().find("12 tokens"), std::string::npos);
  EXPECT_EQ(
      report.files,
      (std::vector<std::string>{
          "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
  );
  Json config =
      Json::parse_file(join_path(out, "tokenizer_config.json"), 1 << 20);
  EXPECT_EQ(config.at("model_max_length").as_int(), 77);
}

TEST_F(ConvertTest, ShardsAreIndexed) {
  ConvertReport report = convert(tiny_model(), {.shard_bytes = 10000});
  Json index =
      Json::parse_file(out_ + "/model.safetensors.index.json", 1 << 20);
  size_t found = 0;
  size_t files = 0;
  for (const std::string& name : os::list_directory(out_)) {
    if (name.ends_with(".safetensors")) {
      ++files;
      EXPECT_TRUE(name.starts_with("model-0000")) << name;
      for (const auto& [tensor, output] : read_safetensors(out_ + "/" + name)) {
        EXPECT_EQ(index.at("weight_map").at(tensor).as_string(), name);
        ++found;
      }
    }
  }
  EXPECT_EQ(found, index.at("weight_map").size());
  EXPECT_GT(files, 2u);
}

TEST_F(ConvertTest, AFilledDirectoryIsRefusedUnlessForced) {
  std::filesystem::create_directory(directory_ / "out");
  std::string keep = directory_.write("out/notes.txt", "mine");
  std::string stale =
      directory_.write("out/model-00001-of-00002.safetensors", "old");
  EXPECT_ERROR(convert(tiny_model()), "out: the directory holds files already");
  EXPECT_EQ(os::list_directory(directory_ / "out").size(), 2u);

  convert(tiny_model(), {.force = true});
  EXPECT_EQ(read_file(keep, 99), "mine");
  EXPECT_FALSE(file_exists(stale));
  EXPECT_EQ(os::list_directory(out_).size(), 6u);
  EXPECT_EQ(left_over(), std::vector<std::string>{"out"});
}

TEST_F(ConvertTest, AnEmptyDirectoryIsFilledAndParentsAreMade) {
  std::filesystem::create_directory(directory_ / "out");
  convert(tiny_model());
  EXPECT_EQ(os::list_directory(out_).size(), 5u);
  convert_gguf(source_, directory_ / "a/b/c/", {});
  EXPECT_TRUE(file_exists(directory_ / "a/b/c/config.json"));
  std::string file = directory_.write("file", "x");
  EXPECT_ERROR(convert_gguf(source_, file, {}), "is no directory");
}

TEST_F(ConvertTest, ABadFileLeavesNothing) {
  GgufBuilder builder = tiny_model();
  std::string blocks = builder.tensor_data("blk.1.ffn_up.weight");
  uint16_t infinite = 0x7c00;
  std::memcpy(blocks.data() + 40 * 5, &infinite, sizeof(infinite));
  builder.remove_tensor("blk.1.ffn_up.weight");
  builder.tensor("blk.1.ffn_up.weight", GgmlType::q4_1, {96, 64}, blocks);
  EXPECT_ERROR(
      convert(builder),
      "tensor \"blk.1.ffn_up.weight\": row 5 holds a value that is not finite"
  );
  EXPECT_TRUE(left_over().empty());
  EXPECT_ERROR(convert_gguf(source_, directory_ / "a/b", {}), "row 5");
  EXPECT_TRUE(left_over().empty());
}

TEST_F(ConvertTest, ValuesThatAreNotFiniteAreRefusedInEveryType) {
  struct Case {
    GgmlType type;
    size_t scale_at;
    size_t scale_bytes;
  };
  for (const Case& c : std::vector<Case>{
           {GgmlType::f32, 0, 4},
           {GgmlType::f16, 0, 2},
           {GgmlType::bf16, 0, 2},
           {GgmlType::q8_0, 0, 2},
           {GgmlType::q5_1, 2, 2},
           {GgmlType::q4_k, 2, 2},
           {GgmlType::q6_k, 208, 2},
       }) {
    for (bool dense : {false, true}) {
      GgufBuilder builder =
          tiny_model({.hidden = 256, .intermediate = 256, .type = c.type});
      std::string blocks = builder.tensor_data("blk.0.ffn_down.weight");
      std::memset(blocks.data() + c.scale_at, 0xff, c.scale_bytes);
      builder.remove_tensor("blk.0.ffn_down.weight");
      builder.tensor("blk.0.ffn_down.weight", c.type, {256, 256}, blocks);
      EXPECT_ERROR(
          convert(builder, {.dense = dense}),
          "tensor \"blk.0.ffn_down.weight\": row 0 holds a value"
      );
      EXPECT_TRUE(left_over().empty());
    }
  }
}

TEST_F(ConvertTest, AnOutputThatCannotBeMadeLeavesNothing) {
  std::string file = directory_.write("m.gguf", tiny_model().build());
  std::string name(253, 'x');  // the temporary name passes 255 bytes
  EXPECT_ERROR(convert_gguf(file, directory_ / ("a/b/" + name), {}), "xxx");
  EXPECT_TRUE(left_over().empty());
}

// A limit on the size of files fails a write as a full disk does.
TEST_F(ConvertTest, AFullDiskLeavesNothing) {
  std::string file = directory_.write("m.gguf", tiny_model().build());
  auto* old = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 20000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  ErrorCode code = ErrorCode::internal;
  std::string message;
  try {
    convert_gguf(file, directory_ / "out", {});
  } catch (const Error& error) {
    code = error.code();
    message = error.message();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old);
  EXPECT_EQ(code, ErrorCode::io);
  EXPECT_NE(message.find("cannot write"), std::string::npos) << message;
  EXPECT_NE(message.find("model.safetensors"), std::string::npos) << message;
  EXPECT_TRUE(left_over().empty());
}

TEST_F(ConvertTest, NotesSayWhatIsLeftOut) {
  GgufBuilder builder = tiny_model();
  builder.put("tokenizer.chat_template.tool_use", "x");
  builder.remove("tokenizer.chat_template");
  ConvertReport report = convert(builder);
  ASSERT_EQ(report.notes.size(), 2u);
  EXPECT_EQ(report.notes[0], "the file has no chat template");
  EXPECT_NE(report.notes[1].find("\"tool_use\""), std::string::npos);
}

}  // namespace mlxcel::convert
