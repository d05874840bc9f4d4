#include "mlxcel/weights/convert/gguf/convert_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/weights/convert/gguf/gguf_model.h"
#include "mlxcel/weights/convert/gguf/gguf_tokenizer.h"
#include "mlxcel/weights/convert/gguf/tensor_convert.h"
#include "mlxcel/weights/convert/output_directory.h"

namespace mlxcel::convert {

namespace {

using Object = nlohmann::ordered_json;

constexpr int64_t max_tokens = INT32_MAX;
constexpr int64_t default_context = 2048;

std::string spelled(FloatType type) {
  switch (type) {
    case FloatType::f16:
      return "float16";
    case FloatType::bf16:
      return "bfloat16";
    default:
      return "float32";
  }
}

Object quantization_entry(int bits) {
  return {{"group_size", kGroup}, {"bits", bits}, {"mode", "affine"}};
}

// The width of most modules, and an entry for each module that differs; empty
// if no tensor is quantised.
Object quantization_config(
    const ModelPlan& plan, const std::vector<TensorTarget>& targets
) {
  std::map<int, int> modules;
  for (const TensorTarget& target : targets) {
    ++modules[target.bits];
  }
  modules.erase(0);
  if (modules.empty()) {
    return nullptr;
  }
  int bits =
      std::max_element(
          modules.begin(),
          modules.end(),
          [](const auto& a, const auto& b) { return a.second < b.second; }
      )->first;
  Object json = quantization_entry(bits);
  for (size_t i = 0; i < targets.size(); ++i) {
    const TensorPlan& tensor = plan.tensors[i];
    if (tensor.source->shape.size() == 1 || targets[i].bits == bits) {
      continue;
    }
    std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    json[module] = targets[i].bits == 0 ? Object(false)
                                        : quantization_entry(targets[i].bits);
  }
  return json;
}

Object full_config(
    const ModelPlan& plan,
    const GgufTokenizer& tokenizer,
    const TensorConverter& converter
) {
  Object json = model_config(plan.parameters);
  auto put = [&](const char* name, std::optional<int64_t> id) {
    if (id) {
      json[name] = *id;
    }
  };
  put("bos_token_id", tokenizer.bos);
  put("eos_token_id", tokenizer.eos);
  put("pad_token_id", tokenizer.pad);
  json["torch_dtype"] = spelled(converter.activation_type());
  Object quantization = quantization_config(plan, converter.targets());
  if (!quantization.is_null()) {
    json["quantization"] = quantization;
  }
  return json;
}

void write_text(
    const OutputDirectory& out,
    const std::string& name,
    const std::string& text,
    ConvertReport& report
) {
  AtomicFile file(join_path(out.staging(), name));
  file.write(text);
  file.commit();
  report.files.push_back(name);
}

struct TypeSums {
  TypeReport report;
  ErrorSums sums;
};

void write_tensors(
    const OutputDirectory& out,
    const ModelPlan& plan,
    const TensorConverter& converter,
    uint64_t shard_bytes,
    ConvertReport& report
) {
  std::vector<OutputTensor> entries;
  std::vector<uint64_t> sizes;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    uint64_t size = 0;
    for (OutputTensor& entry : converter.entries(i)) {
      size += entry.bytes;
      entries.push_back(std::move(entry));
    }
    sizes.push_back(size);
  }
  SafetensorsWriter writer(out.staging(), std::move(entries), shard_bytes);

  std::vector<TypeSums> types;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorPlan& tensor = plan.tensors[i];
    const TensorTarget& target = converter.targets()[i];
    ErrorSums sums = converter.write(i, writer);
    const BlockLayout& layout = block_layout(tensor.source->type);
    std::string type = spelled(target.type);
    if (target.bits > 0) {
      type = fmt::format(
          "affine {}-bit, group {}, {} scales", target.bits, kGroup, type
      );
    }
    auto found = std::find_if(types.begin(), types.end(), [&](const auto& t) {
      return t.report.source == layout.name && t.report.target == type;
    });
    if (found == types.end()) {
      found = types.insert(types.end(), TypeSums{});
      found->report.source = layout.name;
      found->report.target = type;
    }
    auto elements = static_cast<uint64_t>(tensor.rows * tensor.columns());
    found->report.tensors += 1;
    found->report.source_bytes += elements /
                                  static_cast<uint64_t>(layout.elements) *
                                  static_cast<uint64_t>(layout.bytes);
    found->report.target_bytes += sizes[i];
    found->sums.error += sums.error;
    found->sums.value += sums.value;
    report.parameters += elements;
  }
  writer.finish();
  for (TypeSums& type : types) {
    if (type.sums.value > 0) {
      type.report.relative_rms = std::sqrt(type.sums.error / type.sums.value);
    }
    report.types.push_back(type.report);
  }
  report.written_bytes = writer.total_bytes();
  report.files.insert(
      report.files.end(), writer.files().begin(), writer.files().end()
  );
  if (writer.files().size() > 1) {
    report.files.push_back("model.safetensors.index.json");
  }
}

void add_notes(
    const GgufFile& gguf, const GgufTokenizer& tokenizer, ConvertReport& report
) {
  if (tokenizer.chat_template.empty()) {
    report.notes.push_back("the file has no chat template");
  }
  std::string_view prefix = "tokenizer.chat_template.";
  for (const auto& [name, value] : gguf.metadata()) {
    if (name.starts_with(prefix)) {
      report.notes.push_back(fmt::format(
          "the chat template {} is left out, only the default one is kept",
          quote(name.substr(prefix.size()))
      ));
    }
  }
}

void write_tokenizer(
    const OutputDirectory& out,
    const GgufFile& gguf,
    const GgufTokenizer& tokenizer,
    const std::string& vocabulary,
    ConvertReport& report
) {
  std::string context = report.architecture + ".context_length";
  int64_t length =
      gguf.find_int(context, 1, INT32_MAX).value_or(default_context);
  write_text(
      out,
      "generation_config.json",
      generation_config(tokenizer).dump(2) + "\n",
      report
  );
  write_text(out, "tokenizer.json", vocabulary, report);
  write_text(
      out,
      "tokenizer_config.json",
      tokenizer_config(tokenizer, length).dump(2) + "\n",
      report
  );
}

void write_model(
    const OutputDirectory& out,
    const GgufFile& gguf,
    const ModelPlan& plan,
    const GgufTokenizer& tokenizer,
    const ConvertOptions& options,
    ConvertReport& report
) {
  TensorConverter converter(gguf, plan, options.dense);
  report.model_type = plan.parameters.model_type;
  report.tensors = static_cast<int64_t>(gguf.tensors().size());
  write_text(
      out,
      "config.json",
      full_config(plan, tokenizer, converter).dump(2) + "\n",
      report
  );
  write_tensors(out, plan, converter, options.shard_bytes, report);
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

ConvertReport convert_gguf(
    const std::string& file,
    const std::string& out_dir,
    const ConvertOptions& options
) {
  double start = os::now();
  GgufFile gguf = GgufFile::open(file);
  ConvertReport report;
  report.architecture = gguf.need_string("general.architecture");
  report.source_bytes = gguf.file().bytes().size();
  std::optional<ModelPlan> plan;
  if (!options.tokenizer_only) {
    plan = plan_model(gguf);
  }
  GgufTokenizer tokenizer =
      read_tokenizer(gguf, plan ? plan->parameters.vocab_size : max_tokens);
  report.tokens = static_cast<int64_t>(tokenizer.tokens.size());
  std::string vocabulary = tokenizer_json(gguf, tokenizer);

  OutputDirectory out(out_dir, options.force);
  write_tokenizer(out, gguf, tokenizer, vocabulary, report);
  if (plan) {
    write_model(out, gguf, *plan, tokenizer, options, report);
  }
  add_notes(gguf, tokenizer, report);
  if (gguf.file().faulted() || gguf.file().changed()) {
    fail(
        ErrorCode::io,
        fmt::format("[gguf] {} changed or failed while it was read", file)
    );
  }
  out.publish();
  report.seconds = os::now() - start;
  return report;
}

std::string ConvertReport::describe() const {
  std::string text = model_type.empty()
                         ? fmt::format(
                               "{}: a tokenizer of {} tokens in {:.1f} s",
                               architecture,
                               tokens,
                               seconds
                           )
                         : fmt::format(
                               "{} ({}): {} tensors, {:.1f} M parameters, {} "
                               "-> {} in {:.1f} s",
                               architecture,
                               model_type,
                               tensors,
                               static_cast<double>(parameters) / 1e6,
                               megabytes(source_bytes),
                               megabytes(written_bytes),
                               seconds
                           );
  for (const TypeReport& type : types) {
    text += fmt::format(
        "\n  {:<5} x {:<4} -> {}: {} -> {}, {}",
        type.source,
        type.tensors,
        type.target,
        megabytes(type.source_bytes),
        megabytes(type.target_bytes),
        type.relative_rms == 0
            ? std::string("without loss")
            : fmt::format("relative RMS error {:.1e}", type.relative_rms)
    );
  }
  for (const std::string& note : notes) {
    text += "\n  note: " + note;
  }
  return text;
}

}  // namespace mlxcel::convert
