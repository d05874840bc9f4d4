#include "mlxcel/tokenizer/post_processor.h"

#include "mlxcel/tokenizer/pattern.h"
#include "mlxcel/tokenizer/vocab.h"

namespace mlxcel::tokenizer {

namespace {
constexpr size_t max_parts = 64;
}

PostProcessor::PostProcessor(const Json& json) {
  add(json);
}

void PostProcessor::add(const Json& json) {
  const std::string& type = json.at("type").as_string();
  if (type == "Sequence") {
    for (const Json& element : json.at("processors").elements()) {
      add(element);
    }
  } else if (type == "TemplateProcessing") {
    if (has_template_) {
      unsupported_type(json, "second post-processor", type);
    }
    has_template_ = true;
    add_template(json);
  } else if (type != "ByteLevel") {  // which only moves offsets
    unsupported_type(json, "post-processor", type);
  }
}

void PostProcessor::add_template(const Json& json) {
  Json single = json.at("single");
  if (single.size() > max_parts) {
    single.reject("more than 64 parts");
  }
  parts_.clear();
  for (const Json& part : single.elements()) {
    if (auto text = part.find("Sequence")) {
      if (text->at("id").as_string() != "A") {
        text->at("id").reject("a single text is sequence A");
      }
      parts_.push_back({true, {}});
    } else {
      parts_.push_back(
          special_token(part.at("SpecialToken"), json.at("special_tokens"))
      );
    }
  }
}

PostProcessor::Part PostProcessor::special_token(
    const Json& json, const Json& tokens
) {
  Part part{false, {}};
  Json token = tokens.at(json.at("id").as_string());
  for (const Json& id : token.at("ids").elements()) {
    part.ids.push_back(static_cast<int32_t>(id.as_int(0, Vocab::max_id)));
  }
  return part;
}

void PostProcessor::prepend(int32_t id) {
  parts_.insert(parts_.begin(), {false, {id}});
}

void PostProcessor::apply(std::vector<int32_t>& ids, bool special) const {
  if (parts_.size() == 1 && parts_[0].is_text) {
    return;
  }
  std::vector<int32_t> result;
  for (const Part& part : parts_) {
    if (part.is_text) {
      result.insert(result.end(), ids.begin(), ids.end());
    } else if (special) {
      result.insert(result.end(), part.ids.begin(), part.ids.end());
    }
  }
  ids = std::move(result);
}

}  // namespace mlxcel::tokenizer
