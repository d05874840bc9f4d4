#include "mlxcel/tokenizer/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/models/vocab.h"

namespace mlxcel::tokenizer {

namespace {

constexpr int64_t max_length = int64_t{1} << 24;  // of a padded encoding

/// Left or right; some files have it in lower case.
bool is_left(const Json& json) {
  const std::string& name = json.as_string();
  if (name != "Left" && name != "left" && name != "Right" && name != "right") {
    json.reject("expected Left or Right, got " + json.preview());
  }
  return name == "Left" || name == "left";
}

Limits::Strategy parse_strategy(const Json& json) {
  const std::string& name = json.as_string();
  if (name == "LongestFirst") {
    return Limits::Strategy::longest_first;
  }
  if (name == "OnlyFirst") {
    return Limits::Strategy::only_first;
  }
  if (name == "OnlySecond") {
    return Limits::Strategy::only_second;
  }
  json.reject(
      "expected LongestFirst, OnlyFirst or OnlySecond, got " + json.preview()
  );
}

[[noreturn]] void reject(const std::string& reason) {
  fail(
      ErrorCode::invalid_input,
      fmt::format("[tokenizer] truncation: {}", reason)
  );
}

/// What overlaps into further parts is not kept, but must be less than a part.
void cut(
    std::vector<TextToken>& text, size_t size, const Limits::Truncation& how
) {
  if (size >= text.size()) {
    return;
  }
  if (size > 0 && how.stride >= size) {
    reject(fmt::format(
        "the stride of {} is not less than the length of {}", how.stride, size
    ));
  }
  auto keep = static_cast<ptrdiff_t>(size);
  if (how.left) {
    text.erase(text.begin(), text.end() - keep);
  } else {
    text.resize(size);
  }
}

}  // namespace

std::optional<Limits::Truncation> read_truncation(const Json& json) {
  Limits::Truncation truncation{};
  truncation.max_length =
      static_cast<uint64_t>(json.at("max_length").as_int(0));
  truncation.stride = static_cast<uint64_t>(json.at("stride").as_int(0));
  truncation.strategy = parse_strategy(json.at("strategy"));
  auto direction = json.find("direction");
  truncation.left = direction && is_left(*direction);
  return truncation;
}

std::optional<Limits::Padding> read_padding(const Json& json) {
  Limits::Padding padding{};
  Json strategy = json.at("strategy");
  if (strategy.is_object()) {
    padding.length = static_cast<uint64_t>(strategy.at("Fixed").as_int(0));
  } else if (strategy.as_string() != "BatchLongest") {
    strategy.reject("expected BatchLongest or Fixed");
  }
  padding.left = is_left(json.at("direction"));
  padding.multiple_of =
      static_cast<uint64_t>(json.int_or("pad_to_multiple_of", 0, 0));
  padding.id = static_cast<int32_t>(json.at("pad_id").as_int(0, Vocab::max_id));
  padding.type_id =
      static_cast<uint32_t>(json.at("pad_type_id").as_int(0, UINT32_MAX));
  json.at("pad_token").as_string();
  return padding;
}

/// truncate_encodings of the official library. What is cut off is gone.
void Limits::truncate(std::vector<std::vector<TextToken>>& texts, size_t added)
    const {
  if (!truncation) {
    return;
  }
  if (truncation->max_length < added) {
    reject(fmt::format(
        "a length of {} has no room for {} special tokens",
        truncation->max_length,
        added
    ));
  }
  size_t limit = truncation->max_length - added;
  size_t total = 0;
  for (const auto& text : texts) {
    total += text.size();
  }
  if (limit == 0) {
    for (auto& text : texts) {
      text.clear();
    }
    return;
  }
  if (total <= limit) {
    return;
  }
  if (truncation->strategy != Strategy::longest_first) {
    bool second = truncation->strategy == Strategy::only_second;
    if (second && texts.size() < 2) {
      reject("there is no second text to shorten");
    }
    auto& text = texts[second ? 1 : 0];
    if (text.size() <= total - limit) {
      reject("the text to shorten is too short");
    }
    cut(text, text.size() - (total - limit), *truncation);
    return;
  }
  if (texts.size() == 1) {
    cut(texts[0], limit, *truncation);
    return;
  }
  bool swapped = texts[0].size() > texts[1].size();
  size_t shorter = texts[swapped ? 1 : 0].size();
  size_t longer =
      shorter > limit ? shorter : std::max(shorter, limit - shorter);
  if (shorter + longer > limit) {
    shorter = limit / 2;
    longer = shorter + limit % 2;
  }
  cut(texts[swapped ? 1 : 0], shorter, *truncation);
  cut(texts[swapped ? 0 : 1], longer, *truncation);
}

void Limits::pad(Encoding& encoding) const {
  if (!padding) {
    return;
  }
  size_t size = encoding.ids.size();
  size_t length = padding->length.value_or(size);
  auto too_long = [](uint64_t value) {
    if (value > static_cast<uint64_t>(max_length)) {
      fail(
          ErrorCode::invalid_input,
          fmt::format("[tokenizer] padding: to more than {} ids", max_length)
      );
    }
  };
  too_long(length);
  if (padding->multiple_of > 0 && length % padding->multiple_of > 0) {
    too_long(padding->multiple_of);
    length += padding->multiple_of - length % padding->multiple_of;
    too_long(length);
  }
  if (size >= length) {
    return;
  }
  auto at = [&](auto& list) {
    return padding->left ? list.begin() : list.end();
  };
  size_t count = length - size;
  encoding.ids.insert(at(encoding.ids), count, padding->id);
  encoding.offsets.insert(at(encoding.offsets), count, ByteRange{0, 0});
  encoding.type_ids.insert(at(encoding.type_ids), count, padding->type_id);
  encoding.attention.insert(at(encoding.attention), count, 0);
}

}  // namespace mlxcel::tokenizer
