// Runs every file of tests/detection; the format stands in its README.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/file.h"
#include "mlxcel/loading/detect.h"
#include "mlxcel/loading/load_model.h"
#include "mlxcel/loading/policy.h"
#include "mlxcel/tokenizer/tokenizer.h"
#include "mlxcel/weights/quantization.h"
#include "mlxcel/weights/shards.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel {
namespace {

namespace fs = std::filesystem;
using Value = nlohmann::ordered_json;

constexpr uint64_t kCaseLimit = 1 << 20;

struct Section {
  std::string head;  // "config.json", "tensors model.safetensors", "expect"
  std::string body;
};

std::vector<Section> read_case(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<Section> sections;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("--- ")) {
      sections.push_back({line.substr(4), ""});
    } else if (!sections.empty()) {
      sections.back().body += line + "\n";
    }
  }
  return sections;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) {
      lines.push_back(line);
    }
  }
  return lines;
}

// "name" or "name [2, 3]": a float32 tensor, of one element by default.
std::string safetensors(const std::string& list) {
  Value header = Value::object();
  uint64_t at = 0;
  for (const std::string& line : lines_of(list)) {
    size_t space = line.find(' ');
    Value shape = space == std::string::npos
                      ? Value::array({1})
                      : Value::parse(line.substr(space + 1));
    uint64_t bytes = 4;
    for (const Value& dimension : shape) {
      bytes *= dimension.get<uint64_t>();
    }
    header[line.substr(0, space)] = {
        {"dtype", "F32"},
        {"shape", shape},
        {"data_offsets", {at, at + bytes}},
    };
    at += bytes;
  }
  std::string text = header.dump();
  uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file + text + std::string(at, '\0');
}

std::string index(const std::string& list) {
  Value map = Value::object();
  for (const std::string& line : lines_of(list)) {
    size_t space = line.find(' ');
    map[line.substr(0, space)] = line.substr(space + 1);
  }
  return Value({{"weight_map", map}}).dump();
}

// \xEF and the like in a file that must not be plain text.
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\\x") == 0 && i + 3 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

void put(
    const TemporaryDirectory& dir,
    const std::string& name,
    const std::string& data
) {
  fs::create_directories(fs::path(dir / name).parent_path());
  dir.write(name, data);
}

void make_file(const TemporaryDirectory& dir, const Section& section) {
  size_t space = section.head.find(' ');
  std::string word = section.head.substr(0, space);
  std::string name =
      space == std::string::npos ? word : section.head.substr(space + 1);
  if (word == "tensors") {
    put(dir, name, safetensors(section.body));
  } else if (word == "index") {
    put(dir, "model.safetensors.index.json", index(section.body));
  } else if (word == "bytes") {
    std::string body = section.body;
    put(dir, name, unescape(body.substr(0, body.size() - 1)));
  } else if (word == "link") {
    fs::create_symlink(lines_of(section.body).at(0), dir / name);
  } else {
    put(dir, name, section.body);
  }
}

std::string describe(const Detection& detection) {
  const Descriptor& row = descriptor(detection.type);
  std::string text = fmt::format(
      "kind: {}\ntype: {}\nroutes: {} {}\n",
      kind_name(detection.kind),
      row.id,
      directory_route_name(row.directory_route),
      weight_route_name(row.weight_route)
  );
  if (detection.tower) {
    text += "tower: yes\n";
  } else if (!detection.tower_reason.empty()) {
    text += "tower: no, " + detection.tower_reason + "\n";
  }
  if (!detection.notice.empty()) {
    text += "notice: " + detection.notice + "\n";
  }
  return text;
}

std::string loaded_as_generator(const std::string& directory) {
  Json config = read_config(directory);
  Detection detection = detect_model(directory, config);
  require_generation(detection, directory);
  require_sub_configs(detection.type, config);
  require_built(detection.type, directory);
  return "loads: " + std::string(descriptor(detection.type).id) + "\n";
}

std::string run(const std::string& action, const std::string& directory) {
  if (action == "detect") {
    return describe(detect_directory(directory));
  }
  if (action == "embed") {
    return describe(detect_directory(directory, Task::embed));
  }
  if (action == "rerank") {
    return describe(detect_directory(directory, Task::rerank));
  }
  if (action == "find objects") {
    return describe(detect_directory(directory, Task::find_objects));
  }
  if (action == "generate") {
    return loaded_as_generator(directory);
  }
  if (action == "adapters") {
    require_adapters(detect_directory(directory).type);
    return "adapters: yes\n";
  }
  if (action == "tensor parallel") {
    require_tensor_parallel(detect_directory(directory).type);
    return "tensor parallel: yes\n";
  }
  if (action == "images") {
    Detection detection = detect_directory(directory);
    return detection.tower ? "images: yes\n"
                           : no_tower_message(directory) + "\n";
  }
  if (action == "decoder") {
    ModelType type = mistral3_decoder(read_config(directory));
    return fmt::format("decoder: {}\n", descriptor(type).id);
  }
  if (action == "sanitize") {
    std::string text =
        read_file(join_path(directory, "config.json"), kCaseLimit);
    return sanitize_config_text(text) + "\n";
  }
  if (action == "text config") {
    return text_config(read_config(directory)).raw().dump() + "\n";
  }
  if (action == "context window") {
    return fmt::format("{}\n", context_window(read_config(directory)));
  }
  if (action == "stop ids") {
    std::string text;
    for (int64_t id : eos_token_ids(read_config(directory))) {
      text += fmt::format("{}\n", id);
    }
    return text;
  }
  if (action == "weights") {
    return fmt::format("tensors: {}\n", load_weights(directory).size());
  }
  if (action == "quantization") {
    QuantConfig config = QuantConfig::from_config(read_config(directory));
    return fmt::format(
        "{} {} {}\n", quant_mode_name(config.mode), config.bits, config.group
    );
  }
  if (action == "tokenizer") {
    Tokenizer::load(directory);
    return "tokenizer: yes\n";
  }
  return "unknown action " + action + "\n";
}

std::string replace_all(
    std::string text, const std::string& from, const std::string& to
) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// What the case expects and what came out.
struct Outcome {
  std::string expected;
  std::string actual;
};

Outcome run_case(const fs::path& path) {
  TemporaryDirectory dir;
  std::string action = "detect";
  Outcome outcome;
  for (const Section& section : read_case(path)) {
    if (section.head == "expect") {
      outcome.expected = section.body;
    } else if (section.head.starts_with("do ")) {
      action = section.head.substr(3);
    } else {
      make_file(dir, section);
    }
  }
  try {
    outcome.actual = run(action, dir.path());
  } catch (const Error& error) {
    outcome.actual = "error: " + error.message() + "\n";
  } catch (const std::exception& error) {
    outcome.actual = std::string("not an Error: ") + error.what() + "\n";
  }
  outcome.actual = replace_all(outcome.actual, dir.path(), "DIR");
  return outcome;
}

std::vector<fs::path> cases() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(
           fs::path(MLXCEL_TEST_DATA) / "detection"
       )) {
    if (entry.path().extension() == ".case") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(DetectionCases, EachFile) {
  std::vector<fs::path> paths = cases();
  EXPECT_GT(paths.size(), 300u);
  for (const fs::path& path : paths) {
    Outcome outcome = run_case(path);
    EXPECT_FALSE(outcome.expected.empty()) << path;
    EXPECT_EQ(outcome.actual, outcome.expected) << path;
  }
}

TEST(DetectionCases, EveryRowIsReached) {
  std::set<std::string> reached;
  for (const fs::path& path : cases()) {
    for (const Section& section : read_case(path)) {
      size_t at = section.body.find("type: ");
      if (section.head == "expect" && at != std::string::npos) {
        reached.insert(
            section.body.substr(at + 6, section.body.find('\n', at) - at - 6)
        );
      }
    }
  }
  for (const Descriptor& row : registry()) {
    EXPECT_TRUE(reached.contains(std::string(row.id))) << row.id;
  }
}

}  // namespace
}  // namespace mlxcel
