#include "mlxcel/loading/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "mlxcel/chat/template.h"
#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/core/os.h"
#include "mlxcel/core/text.h"
#include "mlxcel/loading/estimate/hollow_weights.h"
#include "mlxcel/loading/signals.h"
#include "mlxcel/weights/vendor_format.h"

namespace mlxcel {

namespace {

constexpr size_t kListed = 20;

// File names by which a tokenizer is found, in no order.
constexpr std::string_view kTokenizerFiles[] = {
    "tokenizer.json",
    "tokenizer.model",
    "tiktoken.model",
    "tokenizer.jsonl",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
};

std::string present(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) {
    quoted.push_back(quote(name));
  }
  return names.empty() ? "nothing" : list_names(quoted, kListed);
}

// The failure of a directory that is no model, with what it holds.
[[noreturn]] void fail_unidentified(
    const std::string& directory, const Error& error
) {
  std::vector<std::string> names = os::list_directory(directory);
  std::string text = fmt::format(
      "{}. The directory holds: {}", error.message(), present(names)
  );
  for (const std::string& name : names) {
    std::string what = describe_foreign_file(join_path(directory, name));
    if (!what.empty()) {
      text += ". " + what;
      break;
    }
  }
  fail(error.code(), text);
}

std::string written_type(const Json& config) {
  auto type = config.find("model_type");
  return type && type->is_string() ? type->as_string() : "";
}

std::vector<std::string> tokenizer_files(const std::string& directory) {
  std::vector<std::string> found;
  for (const std::string& name : os::list_directory(directory)) {
    bool known =
        std::find(
            std::begin(kTokenizerFiles), std::end(kTokenizerFiles), name
        ) != std::end(kTokenizerFiles);
    if (known || name.ends_with(".tiktoken")) {
      found.push_back(name);
    }
  }
  return found;
}

void look_at_template(Inspection& inspection) {
  try {
    if (auto found = ChatTemplate::load(inspection.directory)) {
      inspection.chat_template = found->name();
    }
  } catch (const Error& error) {
    inspection.template_problem = error.message();
  }
}

std::optional<TensorTable> table_of(
    Inspection& inspection, const Descriptor& row, const Json& config
) {
  if (row.family == nullptr) {
    return std::nullopt;
  }
  try {
    return row.family->tensors(text_config(config));
  } catch (const Error& error) {
    inspection.table_problem = error.message();
    return std::nullopt;
  }
}

bool same_formats(
    const std::vector<FormatCount>& a, const std::vector<FormatCount>& b
) {
  return std::equal(
      a.begin(),
      a.end(),
      b.begin(),
      b.end(),
      [](const FormatCount& x, const FormatCount& y) {
        return x.format == y.format && x.bytes == y.bytes;
      }
  );
}

// What becomes of the tensors at a load. Empty where a load refuses them or
// nobody knows.
std::optional<WeightMap> prepare(
    Inspection& inspection,
    const Json& config,
    const TensorListing& listing,
    const TensorTable* table
) {
  try {
    if (table == nullptr && vendor_format(config) == VendorFormat::none) {
      return std::nullopt;
    }
    return prepared_hollow_weights(listing, config, {});
  } catch (const Error& error) {
    inspection.quantization_problem = error.message();
    return std::nullopt;
  }
}

void look_at_prepared(
    Inspection& inspection,
    const WeightMap& weights,
    const QuantConfig* quantization,
    const TensorTable* table
) {
  WeightSummary loaded =
      summarize_weights(outline_of(weights), quantization, table);
  if (!same_formats(loaded.formats, inspection.weights->formats)) {
    inspection.loaded_formats = std::move(loaded.formats);
  }
  inspection.weights->parameters = loaded.parameters;
  inspection.weights->parameters_note = loaded.parameters_note;
  if (table != nullptr) {
    inspection.difference = compare_with_table(*table, weights);
    inspection.weights->parameters = count_parameters(*table, weights);
    inspection.weights->parameters_note = "";
  }
}

// Empty where there are none; what is broken throws.
std::optional<TensorListing> find_weights(Inspection& inspection) {
  try {
    return list_tensors(inspection.directory);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) {
      throw;
    }
    inspection.weights_problem = error.message();
    return std::nullopt;
  }
}

std::optional<WeightMap> look_at_weights(
    Inspection& inspection,
    const Descriptor& row,
    const Json& config,
    const TensorListing& listing
) {
  std::optional<QuantConfig> quantization;
  try {
    quantization = QuantConfig::from_config(config);
  } catch (const Error& error) {
    inspection.quantization_problem = error.message();
  }
  std::optional<TensorTable> table = table_of(inspection, row, config);
  const QuantConfig* declared = quantization ? &*quantization : nullptr;
  const TensorTable* known = table ? &*table : nullptr;
  inspection.shards = listing.shards.size();
  inspection.replaced = listing.replaced();
  // Of a hundred thousand tensors both take their time.
  auto stored = std::async(std::launch::async, [&] {
    return summarize_weights(listing, declared, known);
  });
  std::optional<WeightMap> prepared =
      prepare(inspection, config, listing, known);
  inspection.weights = stored.get();
  if (prepared) {
    look_at_prepared(inspection, *prepared, declared, known);
  }
  return prepared;
}

Json config_of(const std::string& directory) {
  // YOLO26 and Kokoro may come without one (detect_directory()).
  if (!path_exists(join_path(directory, "config.json"))) {
    return Json::from(nlohmann::ordered_json::object(), "no config.json");
  }
  return read_config(directory);
}

}  // namespace

Inspection inspect_directory(
    const std::string& directory,
    const MemoryRequest& request,
    const Budget* recommend_for
) {
  Inspection inspection;
  inspection.directory = directory;
  try {
    inspection.detection = detect_directory(directory);
  } catch (const Error& error) {
    fail_unidentified(directory, error);
  }
  Json config = config_of(directory);
  const Descriptor& row = descriptor(inspection.detection.type);
  inspection.config_type = written_type(config);
  inspection.architectures = architectures(config);
  inspection.window = context_window(config);
  inspection.tokenizer_files = tokenizer_files(directory);
  look_at_template(inspection);
  std::optional<TensorListing> listing = find_weights(inspection);
  std::optional<WeightMap> prepared;
  if (listing) {
    prepared = look_at_weights(inspection, row, config, *listing);
  }
  CheckpointOutline outline{
      row,
      config,
      listing ? &*listing : nullptr,
      inspection.weights_problem,
      prepared ? &*prepared : nullptr,
      inspection.quantization_problem,
  };
  inspection.memory = estimate_memory(outline, request);
  if (recommend_for != nullptr && inspection.table_problem.empty()) {
    inspection.choices = quant_choices(outline, request, *recommend_for);
  } else if (recommend_for != nullptr) {
    inspection.choices.emplace();
  }
  return inspection;
}

std::string describe_foreign_file(const std::string& path) {
  os::FileInfo info;
  if (!os::stat_path(path, info) || !info.regular) {
    return "";
  }
  std::string name = ascii_lower(path.substr(path.rfind('/') + 1));
  auto is = [&](std::initializer_list<std::string_view> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](auto ending) {
      return name.ends_with(ending);
    });
  };
  if (is({".gguf"})) {
    return fmt::format(
        "{} is a GGUF file ({}); models don't run from GGUF: `mlxcel convert "
        "{} OUT_DIR` makes a model directory of one",
        path,
        format_size(info.size),
        path
    );
  }
  if (is({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"})) {
    return fmt::format(
        "{} looks like a PyTorch pickle, which can run code when it is opened "
        "and is therefore never read; get the SafeTensors files of the model, "
        "or make them where you trust the file (safetensors.torch.save_file)",
        path
    );
  }
  if (is({".npz", ".npy"})) {
    return fmt::format(
        "{} is a NumPy archive; weights are read from SafeTensors alone "
        "(mlx_lm.convert makes them)",
        path
    );
  }
  if (is({".onnx", ".tflite", ".h5", ".msgpack"})) {
    return fmt::format(
        "{} belongs to another runtime; get the SafeTensors files of the model",
        path
    );
  }
  return "";
}

std::string usage_of(const Inspection& inspection) {
  const Descriptor& row = descriptor(inspection.detection.type);
  const std::string& dir = inspection.directory;
  std::string use;
  switch (inspection.detection.kind) {
    case ModelKind::generation:
      use = fmt::format("`mlxcel run {0}`, `mlxcel generate -m {0}`", dir);
      break;
    case ModelKind::embedding:
      use = fmt::format(
          "an embedding model: `mlxcel embed -m {0}`, or the embeddings route "
          "of `mlxcel serve -m {0}`; it does not generate",
          dir
      );
      break;
    case ModelKind::reranker:
      use = fmt::format(
          "a reranker: `mlxcel rerank -m {0}`, or `mlxcel serve "
          "--reranker-model {0}`; it does not generate",
          dir
      );
      break;
    case ModelKind::speech_to_text:
      use = fmt::format(
          "a speech-to-text model: the audio routes of `mlxcel serve -m {}`",
          dir
      );
      break;
    case ModelKind::text_to_speech:
      use = fmt::format(
          "a text-to-speech model: the speech route of `mlxcel serve -m {}`",
          dir
      );
      break;
    case ModelKind::object_detection:
      use = fmt::format("an object detector: `mlxcel detect -m {}`", dir);
      break;
  }
  if (row.status != Status::built) {
    use += "; this build recognises the architecture and can't run it yet";
  }
  return use;
}

}  // namespace mlxcel
