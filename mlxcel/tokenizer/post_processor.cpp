#include "mlxcel/tokenizer/post_processor.h"

#include <algorithm>

#include "mlxcel/tokenizer/models/vocab.h"
#include "mlxcel/tokenizer/split/pattern.h"

namespace mlxcel::tokenizer {

namespace {

constexpr size_t max_parts = 64;

int32_t token_id(const Json& json) {
  return static_cast<int32_t>(json.as_int(0, Vocab::max_id));
}

/// ["[SEP]", 102]
int32_t named_token(const Json& json) {
  std::vector<Json> pair = json.elements();
  if (pair.size() != 2) {
    json.reject("expected a token and its id");
  }
  pair[0].as_string();
  return token_id(pair[1]);
}

}  // namespace

PostProcessor::PostProcessor() {
  plans_[0] = {{{0, 0, {}, {}}}};
  plans_[1] = {{{0, 0, {}, {}}}, {{1, 1, {}, {}}}};
}

PostProcessor::PostProcessor(const Json& json) : PostProcessor() {
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
  } else if (type == "BertProcessing") {
    add_bert(json, false);
  } else if (type == "RobertaProcessing") {
    bool prefix = json.at("add_prefix_space").as_bool();
    if (json.at("trim_offsets").as_bool()) {
      add_trim(prefix);
    }
    add_bert(json, true);
  } else if (type == "ByteLevel") {
    bool prefix = json.bool_or("add_prefix_space", true);
    if (json.bool_or("trim_offsets", true)) {
      add_trim(prefix);
    }
  } else {
    unsupported_type(json, "post-processor", type);
  }
  for (const auto& plan : plans_) {
    size_t parts = 0;
    for (const Group& group : plan) {
      parts += group.size();
    }
    if (parts > max_parts) {
      json.reject("more than 64 parts");
    }
  }
}

void PostProcessor::add_template(const Json& json) {
  Json tokens = json.at("special_tokens");
  auto pair = json.find("pair");
  for (size_t texts = 1; texts <= 2; ++texts) {
    const std::vector<Group> before = plans_[texts - 1];
    std::vector<Group>& plan = plans_[texts - 1];
    bool each_alone = texts == 2 && !pair;
    Group list = read_template(
        pair && texts == 2 ? *pair : json.at("single"),
        tokens,
        each_alone ? 1 : texts
    );
    plan.clear();
    for (size_t copy = 0; copy < (each_alone ? 2u : 1u); ++copy) {
      for (const Part& part : list) {
        if (part.text < 0) {
          plan.push_back({part});
          continue;
        }
        Group group = before[static_cast<size_t>(part.text) + copy];
        for (Part& inner : group) {
          inner.type_id =
              each_alone ? static_cast<uint32_t>(copy) : part.type_id;
        }
        plan.push_back(std::move(group));
      }
    }
  }
}

PostProcessor::Group PostProcessor::read_template(
    const Json& list, const Json& tokens, size_t texts
) {
  if (list.size() > max_parts) {
    list.reject("more than 64 parts");
  }
  Group group;
  for (const Json& element : list.elements()) {
    auto text = element.find("Sequence");
    Json part = text ? *text : element.at("SpecialToken");
    auto type_id = static_cast<uint32_t>(part.int_or("type_id", 0, 0, 1 << 20));
    if (!text) {
      group.push_back(special_token(part, tokens));
      group.back().type_id = type_id;
      continue;
    }
    const std::string& id = part.at("id").as_string();
    if (id != "A" && (id != "B" || texts != 2)) {
      part.at("id").reject(
          texts == 2 ? "expected A or B" : "a single text is sequence A"
      );
    }
    group.push_back({id == "A" ? 0 : 1, type_id, {}, {}});
  }
  return group;
}

PostProcessor::Part PostProcessor::special_token(
    const Json& json, const Json& tokens
) {
  Part part{-1, 0, {}, {}};
  Json token = tokens.at(json.at("id").as_string());
  for (const Json& id : token.at("ids").elements()) {
    part.ids.push_back(token_id(id));
  }
  return part;
}

/// [CLS] A [SEP] and B [SEP]; of Roberta [SEP] B [SEP], and one type for all.
void PostProcessor::add_bert(const Json& json, bool roberta) {
  int32_t sep = named_token(json.at("sep"));
  int32_t cls = named_token(json.at("cls"));
  for (auto& plan : plans_) {
    for (size_t i = 0; i < plan.size(); ++i) {
      Group& group = plan[i];
      uint32_t type = i == 0 || roberta ? 0 : 1;
      if (roberta) {
        for (Part& part : group) {
          part.type_id = 0;
        }
      }
      if (i == 0 || roberta) {
        group.insert(group.begin(), {-1, type, {i == 0 ? cls : sep}, {}});
      }
      group.push_back({-1, type, {sep}, {}});
    }
  }
}

void PostProcessor::add_trim(bool add_prefix_space) {
  for (auto& plan : plans_) {
    for (Group& group : plan) {
      bool special_before = false;
      for (Part& part : group) {
        if (part.text >= 0) {
          part.trims.push_back({add_prefix_space, !special_before, true});
        }
        special_before = special_before || !part.ids.empty();
      }
    }
  }
}

void PostProcessor::prepend(int32_t id) {
  for (auto& plan : plans_) {
    plan.insert(plan.begin(), {{-1, 0, {id}, {}}});
  }
}

void PostProcessor::apply(std::vector<int32_t>& ids, bool special) const {
  const std::vector<Group>& plan = plans_[0];
  if (plan.size() == 1 && plan[0].size() == 1 && plan[0][0].text == 0) {
    return;
  }
  std::vector<int32_t> result;
  result.reserve(ids.size() + 2);
  for (const Group& group : plan) {
    for (const Part& part : group) {
      if (part.text >= 0) {
        result.insert(result.end(), ids.begin(), ids.end());
      } else if (special) {
        result.insert(result.end(), part.ids.begin(), part.ids.end());
      }
    }
  }
  ids = std::move(result);
}

Encoding PostProcessor::apply(
    std::span<const std::string_view> texts,
    const std::vector<std::vector<TextToken>>& tokens,
    bool special
) const {
  Encoding encoding;
  for (const Group& group : plans_[texts.size() - 1]) {
    for (const Part& part : group) {
      if (part.text >= 0) {
        auto i = static_cast<size_t>(part.text);
        put_text(part, texts[i], tokens[i], special, encoding);
      } else if (special) {
        encoding.ids.insert(
            encoding.ids.end(), part.ids.begin(), part.ids.end()
        );
        encoding.offsets.resize(encoding.ids.size(), {0, 0});
      }
      encoding.type_ids.resize(encoding.ids.size(), part.type_id);
    }
  }
  encoding.attention.assign(encoding.ids.size(), 1);
  return encoding;
}

/// process_offsets of the official library, which counts characters.
ByteRange PostProcessor::trimmed(
    std::string_view text, const TextToken& token, bool first, const Trim& trim
) {
  auto inside = [&text](size_t at) {
    return at < text.size() &&
           (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  ByteRange bytes = token.bytes;
  first = first || bytes.begin == 0;
  bool added = first && trim.add_prefix_space && token.leading_spaces == 1;
  for (uint32_t i = added ? 1 : 0;
       i < token.leading_spaces && bytes.begin < bytes.end;
       ++i) {
    do {
      ++bytes.begin;
    } while (inside(bytes.begin));
  }
  ByteRange cut = bytes;
  for (uint32_t i = 0; i < token.trailing_spaces; ++i) {
    if (cut.end == 0) {
      return bytes;
    }
    do {
      --cut.end;
    } while (inside(cut.end));
  }
  return {bytes.begin, std::max(bytes.begin, cut.end)};
}

void PostProcessor::put_text(
    const Part& part,
    std::string_view text,
    const std::vector<TextToken>& tokens,
    bool special,
    Encoding& encoding
) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    TextToken token = tokens[i];
    for (const Trim& trim : part.trims) {
      bool alone = special ? trim.first_with_special : trim.first_without;
      token.bytes = trimmed(text, token, i == 0 && alone, trim);
    }
    encoding.ids.push_back(token.id);
    encoding.offsets.push_back(token.bytes);
  }
}

std::optional<int32_t> PostProcessor::first_added() const {
  for (const Group& group : plans_[0]) {
    for (const Part& part : group) {
      if (part.text >= 0) {
        return std::nullopt;
      }
      if (!part.ids.empty()) {
        return part.ids[0];
      }
    }
  }
  return std::nullopt;
}

size_t PostProcessor::added_tokens(size_t texts) const {
  size_t count = 0;
  for (const Group& group : plans_[texts - 1]) {
    for (const Part& part : group) {
      count += part.ids.size();
    }
  }
  return count;
}

bool PostProcessor::trims() const {
  for (const auto& plan : plans_) {
    for (const Group& group : plan) {
      for (const Part& part : group) {
        if (!part.trims.empty()) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace mlxcel::tokenizer
