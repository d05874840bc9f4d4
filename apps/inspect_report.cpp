#include "apps/inspect_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/preflight.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/text.h"
#include "mlxcel/loading/policy.h"
#include "mlxcel/loading/registry.h"
#include "mlxcel_version.h"

namespace mlxcel::apps {

namespace {

using Object = nlohmann::ordered_json;

constexpr size_t kListed = 8;

const Descriptor& row_of(const Inspection& inspection) {
  return descriptor(inspection.detection.type);
}

std::string_view status_of(const Descriptor& row) {
  return row.status == Status::built ? "built" : "recognised";
}

void add_line(std::string& text, const char* name, const std::string& value) {
  if (!value.empty()) {
    fmt::format_to(std::back_inserter(text), "{:<13}{}\n", name, value);
  }
}

std::string quoted(const std::string& word) {
  return word.empty() ? "absent" : quote(word);
}

std::string names(const std::vector<std::string>& all) {
  std::vector<std::string> words;
  for (const std::string& name : all) {
    words.push_back(quote(name));
  }
  return list_names(words, kListed);
}

std::string parameters_text(const WeightSummary& weights) {
  auto count = static_cast<double>(weights.parameters);
  std::string text = count >= 1e9 ? fmt::format("{:.2f} billion", count * 1e-9)
                                  : fmt::format("{:.1f} million", count * 1e-6);
  text += fmt::format(" ({})", weights.parameters);
  return weights.parameters_note.empty()
             ? text
             : "at least " + text + ": " + weights.parameters_note;
}

std::string formats_text(const std::vector<FormatCount>& formats) {
  std::vector<std::string> parts;
  for (const FormatCount& format : formats) {
    parts.push_back(fmt::format(
        "{}: {} tensors, {}",
        format.format,
        format.tensors,
        format_size(format.bytes)
    ));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string tower_text(const Inspection& inspection) {
  const Descriptor& row = row_of(inspection);
  if (!inspection.detection.tower_reason.empty()) {
    return "not loaded: " + inspection.detection.tower_reason;
  }
  return row.tower == Tower::none ? "" : "present";
}

void add_identity(std::string& text, const Inspection& inspection) {
  const Descriptor& row = row_of(inspection);
  add_line(text, "model", inspection.directory);
  add_line(
      text,
      "type",
      fmt::format(
          "{} ({}), {}; model_type {}",
          row.display_name,
          row.id,
          status_of(row),
          quoted(inspection.config_type)
      )
  );
  add_line(
      text,
      "kind",
      fmt::format(
          "{}, {}; group {}",
          kind_name(inspection.detection.kind),
          category_name(row.category),
          row.group
      )
  );
  add_line(text, "classes", names(inspection.architectures));
  add_line(
      text,
      "loader",
      fmt::format(
          "directory route {}, weight route {}",
          directory_route_name(row.directory_route),
          weight_route_name(row.weight_route)
      )
  );
  add_line(text, "input", std::string(row.modalities_in));
  add_line(text, "tower", tower_text(inspection));
  add_line(text, "adapters", adapter_refusal(row.type));
  add_line(text, "notice", inspection.detection.notice);
  add_line(text, "use", usage_of(inspection));
}

void add_files(std::string& text, const Inspection& inspection) {
  if (inspection.window > 0) {
    add_line(text, "window", fmt::format("{} tokens", inspection.window));
  }
  add_line(
      text,
      "tokenizer",
      inspection.tokenizer_files.empty()
          ? "no file that is known"
          : fmt::format("{}", fmt::join(inspection.tokenizer_files, ", "))
  );
  add_line(
      text,
      "template",
      !inspection.template_problem.empty() ? inspection.template_problem
      : inspection.chat_template.empty()   ? "none"
                                           : inspection.chat_template
  );
}

void add_weights(std::string& text, const Inspection& inspection) {
  add_line(text, "no weights", inspection.weights_problem);
  add_line(text, "quantised", inspection.quantization_problem);
  add_line(text, "config", inspection.table_problem);
  if (!inspection.weights) {
    return;
  }
  const WeightSummary& weights = *inspection.weights;
  add_line(text, "parameters", parameters_text(weights));
  add_line(text, "formats", formats_text(weights.formats));
  add_line(text, "loaded as", formats_text(inspection.loaded_formats));
  add_line(
      text,
      "files",
      fmt::format(
          "{} shard{}, {} tensors, {}{}",
          inspection.shards,
          inspection.shards == 1 ? "" : "s",
          weights.tensors,
          exact_size(weights.bytes),
          inspection.replaced == 0
              ? ""
              : fmt::format(
                    "; {} tensors are in several shards, the last one counts",
                    inspection.replaced
                )
      )
  );
  if (!inspection.difference) {
    return;
  }
  const TableDifference& difference = *inspection.difference;
  add_line(
      text,
      "tensors",
      difference.missing.empty() && difference.unexpected.empty()
          ? "exactly those that the family has"
          : ""
  );
  if (!difference.missing.empty()) {
    add_line(
        text,
        "missing",
        fmt::format(
            "{} tensors: {}",
            difference.missing.size(),
            names(difference.missing)
        )
    );
  }
  if (!difference.unexpected.empty()) {
    add_line(
        text,
        "unexpected",
        fmt::format(
            "{} tensors, never read: {}",
            difference.unexpected.size(),
            names(difference.unexpected)
        )
    );
  }
}

Object number_or_null(const std::optional<uint64_t>& value) {
  return value ? Object(*value) : Object(nullptr);
}

Object text_or_null(const std::string& text) {
  return text.empty() ? Object(nullptr) : Object(text);
}

const char* source_name(WeightsSource source) {
  switch (source) {
    case WeightsSource::safetensors_header:
      return "safetensors_header";
    case WeightsSource::config:
      return "analytical_config";
    case WeightsSource::none:
      break;
  }
  return nullptr;
}

Object words(std::string_view list) {
  Object all = Object::array();
  while (!list.empty()) {
    size_t end = std::min(list.find(' '), list.size());
    all.push_back(std::string(list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return all;
}

void put_memory(
    Object& out,
    const Inspection& inspection,
    const InspectInputs& inputs,
    const Budget& budget
) {
  const MemoryEstimate& memory = inspection.memory;
  bool runs = memory.activations.bytes.has_value();
  out["inputs"] = {
      {"max_tokens", inputs.memory.context},
      {"batch", inputs.memory.batch},
      {"kv_cache_mode", inputs.kv_mode},
      {"quant", inputs.quant},
  };
  out["weights_bytes"] = number_or_null(memory.weights.bytes);
  const char* source = source_name(memory.source);
  out["weights_source"] = source == nullptr ? Object(nullptr) : Object(source);
  out["kv_bytes_per_token"] = {
      {"fp16", number_or_null(memory.kv_per_token)},
      {"int8", nullptr},
      {"turbo4", nullptr},
  };
  out["kv_bytes_total"] = number_or_null(memory.kv.bytes);
  out["kv_detail"] = memory.kv.note;
  out["per_slot_overhead_bytes"] =
      runs && memory.kv_per_token
          ? Object(
                *memory.kv_per_token *
                static_cast<uint64_t>(backend::kBlockTokens)
            )
          : Object(nullptr);
  out["activation_bytes"] = number_or_null(memory.activations.bytes);
  out["backend_inflight_bytes"] = 0;
  out["net_bytes"] = number_or_null(memory.net());
  out["headroom_bytes"] = memory.headroom();
  out["headroom_factor"] = memory.factor;
  out["budget_bytes"] =
      budget.bytes == 0 ? Object(nullptr) : Object(budget.bytes);
  out["budget_source"] = budget.source;
  out["known_bytes"] = memory.known() + memory.headroom();
  out["total_bytes"] = number_or_null(memory.total());
  auto fits = memory.fits(budget);
  out["fits"] = fits ? Object(*fits) : Object(nullptr);
  Object unknown = Object::object();
  auto explain = [&](const char* name, const Figure& figure) {
    if (!figure.bytes) {
      unknown[name] = figure.note;
    }
  };
  explain("weights_bytes", memory.weights);
  explain("kv_bytes_total", memory.kv);
  explain("activation_bytes", memory.activations);
  out["unknown"] = std::move(unknown);
}

void put_choices(Object& out, const Inspection& inspection) {
  if (!inspection.choices) {
    return;
  }
  Object list = Object::array();
  for (const QuantChoice& choice : *inspection.choices) {
    list.push_back(
        {{"format", choice.format},
         {"convert", choice.convert},
         {"weights_bytes", choice.weights},
         {"net_bytes", choice.net},
         {"fits", choice.fits}}
    );
  }
  out["quantisations"] = std::move(list);
  const QuantChoice* best = recommended(*inspection.choices);
  out["recommended_quantisation"] =
      best == nullptr ? Object(nullptr) : Object(best->format);
}

void put_identity(Object& out, const Inspection& inspection) {
  const Descriptor& row = row_of(inspection);
  out["mlxcel_version"] = MLXCEL_VERSION;
  out["model"] = inspection.directory;
  out["model_type"] = text_or_null(inspection.config_type);
  out["family"] = row.id;
  out["display_name"] = row.display_name;
  out["group"] = row.group;
  out["kind"] = kind_name(inspection.detection.kind);
  out["category"] = category_name(row.category);
  out["status"] = status_of(row);
  out["architectures"] = inspection.architectures;
  out["directory_route"] = directory_route_name(row.directory_route);
  out["weight_route"] = weight_route_name(row.weight_route);
  out["adapter_refusal"] = text_or_null(adapter_refusal(row.type));
  out["modalities_in"] = words(row.modalities_in);
  out["tower"] =
      row.tower == Tower::none && inspection.detection.tower_reason.empty()
          ? Object(nullptr)
          : Object(inspection.detection.tower_reason.empty());
  out["tower_reason"] = text_or_null(inspection.detection.tower_reason);
  out["notice"] = text_or_null(inspection.detection.notice);
  out["use"] = usage_of(inspection);
  out["context_window"] =
      inspection.window > 0 ? Object(inspection.window) : Object(nullptr);
  out["tokenizer_files"] = inspection.tokenizer_files;
  out["chat_template"] = text_or_null(inspection.chat_template);
  out["chat_template_problem"] = text_or_null(inspection.template_problem);
}

Object formats_list(const std::vector<FormatCount>& formats) {
  Object list = Object::array();
  for (const FormatCount& format : formats) {
    list.push_back(
        {{"format", format.format},
         {"tensors", format.tensors},
         {"bytes", format.bytes}}
    );
  }
  return list;
}

void put_weights(Object& out, const Inspection& inspection) {
  out["weights_problem"] = text_or_null(inspection.weights_problem);
  out["quantization_problem"] = text_or_null(inspection.quantization_problem);
  out["config_problem"] = text_or_null(inspection.table_problem);
  out["shards"] = inspection.shards;
  if (!inspection.weights) {
    out["file_bytes"] = nullptr;
    out["tensors"] = nullptr;
    out["parameters"] = nullptr;
    out["formats"] = nullptr;
  } else {
    const WeightSummary& weights = *inspection.weights;
    out["file_bytes"] = weights.bytes;
    out["tensors"] = weights.tensors;
    out["parameters"] = weights.parameters_note.empty()
                            ? Object(weights.parameters)
                            : Object(nullptr);
    out["formats"] = formats_list(weights.formats);
  }
  out["loaded_formats"] = inspection.loaded_formats.empty()
                              ? Object(nullptr)
                              : formats_list(inspection.loaded_formats);
  out["missing_tensors"] = nullptr;
  out["unexpected_tensors"] = nullptr;
  if (inspection.difference) {
    out["missing_tensors"] = inspection.difference->missing;
    out["unexpected_tensors"] = inspection.difference->unexpected;
  }
}

}  // namespace

std::string inspect_text(
    const Inspection& inspection,
    const InspectInputs& inputs,
    const Budget& budget
) {
  std::string text;
  add_identity(text, inspection);
  add_files(text, inspection);
  add_weights(text, inspection);
  text += "\nMemory\n";
  add_line(text, "quantisation", inputs.quant);
  add_line(text, "KV type", inputs.kv_mode);
  text += memory_text(inspection.memory, inputs.memory, budget);
  if (inspection.memory.fits(budget) == false) {
    text +=
        "The memory check of generate and serve is expected to refuse it "
        "unless --force is given.\n";
  }
  if (inspection.choices) {
    text +=
        "\n" + recommendation_text(*inspection.choices, inputs.memory, budget);
  }
  return text;
}

std::string inspect_json(
    const Inspection& inspection,
    const InspectInputs& inputs,
    const Budget& budget
) {
  Object out;
  put_identity(out, inspection);
  put_weights(out, inspection);
  put_memory(out, inspection, inputs, budget);
  put_choices(out, inspection);
  // Names in a file may hold what is no text.
  return out.dump(2, ' ', false, Object::error_handler_t::replace) + "\n";
}

}  // namespace mlxcel::apps
