#include "mlxcel/tokenizer/decode/decoder.h"

#include <algorithm>

#include "mlxcel/tokenizer/decode/decode_steps.h"
#include "mlxcel/tokenizer/split/metaspace.h"
#include "mlxcel/tokenizer/split/pattern.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {
constexpr size_t max_steps = 64;
}

class DecodeStream::Output : public DecodeStep {
 public:
  std::string* out = nullptr;

  void push(std::string_view token) override {
    *out += token;
  }
  void finish() override {}
};

DecodeStream::DecodeStream(std::vector<std::unique_ptr<DecodeStep>> steps)
    : steps_(std::move(steps)), output_(std::make_unique<Output>()) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i]->set_next(
        i + 1 < steps_.size() ? steps_[i + 1].get() : output_.get()
    );
  }
}

DecodeStream::~DecodeStream() = default;

void DecodeStream::push(std::string_view token, std::string& out) {
  output_->out = &out;
  DecodeStep& first = steps_.empty() ? *output_ : *steps_[0];
  first.push(token);
}

void DecodeStream::finish(std::string& out) {
  output_->out = &out;
  for (const auto& step : steps_) {
    step->finish();
  }
}

Decoder::Decoder() {
  add([](DecodeMode) { return make_join_step(" "); });
}

Decoder::Decoder(const Json& json) {
  add(json);
}

Decoder::Decoder(Maker make) {
  add(std::move(make));
}

Decoder Decoder::byte_level() {
  Decoder decoder;
  decoder.entries_.clear();
  decoder.add(make_byte_level_step, true);
  return decoder;
}

void Decoder::add(Maker make, bool joins) {
  entries_.push_back({std::move(make), joins});
}

void Decoder::add(const Json& json) {
  const std::string& type = json.at("type").as_string();
  if (entries_.size() == max_steps) {
    json.reject("more than 64 decoders");
  }
  if (type == "Sequence") {
    for (const Json& element : json.at("decoders").elements()) {
      add(element);
    }
  } else if (type == "ByteLevel") {
    add(make_byte_level_step, true);
  } else if (type == "ByteFallback") {
    add(make_byte_fallback_step);
  } else if (type == "Fuse") {
    add([](DecodeMode) { return make_join_step(""); }, true);
  } else if (type == "Replace") {
    auto replace = std::make_shared<const DecodeReplace>(json);
    add([replace](DecodeMode mode) { return make_replace_step(replace, mode); }
    );
  } else if (type == "Strip") {
    DecodeStrip strip(json);
    add([strip](DecodeMode mode) { return make_strip_step(strip, mode); });
  } else if (type == "Metaspace") {
    auto metaspace = std::make_shared<const Metaspace>(json);
    add([metaspace](DecodeMode mode) {
      return make_metaspace_step(metaspace, mode);
    });
  } else if (type == "WordPiece") {
    auto word_piece = std::make_shared<const DecodeWordPiece>(json);
    add([word_piece](DecodeMode mode) {
      return make_word_piece_step(word_piece, mode);
    });
  } else if (type == "CTC") {
    auto ctc = std::make_shared<const DecodeCtc>(json);
    add([ctc](DecodeMode mode) { return make_ctc_step(ctc, mode); });
  } else if (type == "BPEDecoder") {
    std::string suffix = json.at("suffix").as_string();
    add([suffix](DecodeMode mode) { return make_bpe_step(suffix, mode); });
  } else {
    unsupported_type(json, "decoder", type);
  }
}

DecodeStream Decoder::stream(bool early) const {
  std::vector<std::unique_ptr<DecodeStep>> steps;
  bool joined = false;
  for (const Entry& entry : entries_) {
    steps.push_back(entry.make({joined, early}));
    joined = joined || entry.joins;
  }
  return DecodeStream(std::move(steps));
}

}  // namespace mlxcel::tokenizer
