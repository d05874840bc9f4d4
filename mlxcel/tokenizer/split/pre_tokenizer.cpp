#include "mlxcel/tokenizer/split/pre_tokenizer.h"

#include "mlxcel/tokenizer/split/byte_level.h"
#include "mlxcel/tokenizer/split/metaspace.h"
#include "mlxcel/tokenizer/split/pattern.h"
#include "mlxcel/tokenizer/split/split.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr size_t max_steps = 64;

/// The pattern of GPT-2's encoder.py.
const Regex& gpt2_pattern() {
  static const std::shared_ptr<const Regex> pattern = Regex::compile(
      "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
      "|\\s+(?!\\S)|\\s+"
  );
  return *pattern;
}

/// Spells each piece in the byte-level alphabet.
class ByteSpelling : public PieceSink {
 public:
  explicit ByteSpelling(PieceSink& sink) : sink_(sink) {}

  void take(const Piece& piece) override {
    if (piece.size() == 0) {
      return;
    }
    Text text(piece);
    std::string_view view = text.view();
    TextEditor editor(text);
    std::string spelling;
    const char* p = view.data();
    while (p != view.data() + view.size()) {
      const char* begin = p;
      utf8::next(p);
      auto size = static_cast<size_t>(p - begin);
      spelling.clear();
      append_byte_level(spelling, {begin, size});
      editor.swap(size, spelling);
    }
    editor.finish();
    sink_.take({&text, 0, text.view().size()});
  }

 private:
  PieceSink& sink_;
};

class ByteLevel : public PreTokenizerStep {
 public:
  /// `spell` is false where the model itself reads bytes.
  ByteLevel(const Json& json, bool spell)
      : add_prefix_space_(json.at("add_prefix_space").as_bool()),
        use_regex_(json.bool_or("use_regex", true)),
        spell_(spell) {}

  void split(const Piece& piece, PieceSink& sink) const override {
    if (add_prefix_space_ && piece.view().front() != ' ') {
      Text text(piece);
      TextEditor editor(text);
      editor.insert_before(" ");
      editor.finish();
      cut({&text, 0, text.view().size()}, sink);
    } else {
      cut(piece, sink);
    }
  }

 private:
  void cut(const Piece& piece, PieceSink& sink) const {
    ByteSpelling spelling(sink);
    PieceSink& next = spell_ ? static_cast<PieceSink&>(spelling) : sink;
    if (use_regex_) {
      split_by_pattern(
          piece, gpt2_pattern(), SplitBehavior::isolated, false, next
      );
    } else {
      next.take(piece);
    }
  }

  bool add_prefix_space_;
  bool use_regex_;
  bool spell_;
};

class Split : public PreTokenizerStep {
 public:
  explicit Split(const Json& json)
      : pattern_(make_pattern(json.at("pattern"))),
        behavior_(parse_split_behavior(json.at("behavior"))),
        invert_(json.at("invert").as_bool()) {}

  void split(const Piece& piece, PieceSink& sink) const override {
    split_by_pattern(piece, *pattern_, behavior_, invert_, sink);
  }

 private:
  std::shared_ptr<const Regex> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

/// Digits, Punctuation and WhitespaceSplit.
class AttributeSplit : public PreTokenizerStep {
 public:
  AttributeSplit(uint32_t attribute, SplitBehavior behavior)
      : attribute_(attribute), behavior_(behavior) {}

  void split(const Piece& piece, PieceSink& sink) const override {
    split_by_attribute(piece, attribute_, behavior_, sink);
  }

 private:
  uint32_t attribute_;
  SplitBehavior behavior_;
};

/// Runs of word characters and runs of what is neither word nor space.
class Whitespace : public PreTokenizerStep {
 public:
  void split(const Piece& piece, PieceSink& sink) const override {
    std::string_view text = piece.view();
    const unicode::AttributeTable& table = unicode::attributes();
    const char* p = text.data();
    size_t start = 0;
    uint32_t kind = 0;
    auto emit = [&](size_t end) {
      if (end > start && kind != unicode::space) {
        sink.take({piece.text, piece.begin + start, piece.begin + end});
      }
    };
    while (p != text.data() + text.size()) {
      auto at = static_cast<size_t>(p - text.data());
      uint32_t next = table[utf8::next(p)] & (unicode::word | unicode::space);
      if (next != kind) {
        emit(at);
        start = at;
        kind = next;
      }
    }
    emit(text.size());
  }
};

/// Cuts out one character.
class CharDelimiterSplit : public PreTokenizerStep {
 public:
  explicit CharDelimiterSplit(const Json& json)
      : pattern_(Regex::literal(json.at("delimiter").as_string())) {
    char32_t c = 0;
    if (!utf8::single(json.at("delimiter").as_string(), c)) {
      json.at("delimiter").reject("expected one character");
    }
  }

  void split(const Piece& piece, PieceSink& sink) const override {
    split_by_pattern(piece, *pattern_, SplitBehavior::removed, false, sink);
  }

 private:
  std::shared_ptr<const Regex> pattern_;
};

/// Cuts after every `length` characters.
class FixedLength : public PreTokenizerStep {
 public:
  explicit FixedLength(const Json& json)
      : length_(json.int_or("length", 5, 1)) {}

  void split(const Piece& piece, PieceSink& sink) const override {
    std::string_view text = piece.view();
    size_t begin = 0;
    int64_t count = 0;
    for (size_t at = 0; at < text.size();) {
      at += utf8::length(static_cast<unsigned char>(text[at]));
      if (++count == length_ || at == text.size()) {
        sink.take({piece.text, piece.begin + begin, piece.begin + at});
        begin = at;
        count = 0;
      }
    }
  }

 private:
  int64_t length_;
};

/// Cuts where the script changes. What comes before the first character that
/// has a script is lost: official.
class UnicodeScripts : public PreTokenizerStep {
 public:
  void split(const Piece& piece, PieceSink& sink) const override {
    std::string_view text = piece.view();
    const unicode::RunTable& scripts = unicode::written_scripts();
    const char* p = text.data();
    uint16_t last = 0;
    size_t begin = 0;
    while (p != text.data() + text.size()) {
      auto at = static_cast<size_t>(p - text.data());
      uint16_t script = scripts[utf8::next(p)];
      if (script == 0 || script == last) {
        continue;
      }
      if (last != 0) {
        sink.take({piece.text, piece.begin + begin, piece.begin + at});
      }
      begin = at;
      last = script;
    }
    if (last != 0) {
      sink.take({piece.text, piece.begin + begin, piece.end});
    }
  }
};

class MetaspaceStep : public PreTokenizerStep {
 public:
  explicit MetaspaceStep(const Json& json) : metaspace_(json) {}

  void split(const Piece& piece, PieceSink& sink) const override {
    metaspace_.split(piece, sink);
  }
  bool needs_origins() const override {
    return metaspace_.scheme() == Metaspace::Scheme::first;
  }

 private:
  Metaspace metaspace_;
};

}  // namespace

namespace {

std::unique_ptr<PreTokenizerStep> make_step(
    const Json& json, const std::string& type
) {
  if (type == "Split") {
    return std::make_unique<Split>(json);
  }
  if (type == "Digits") {
    return std::make_unique<AttributeSplit>(
        unicode::numeric,
        json.at("individual_digits").as_bool() ? SplitBehavior::isolated
                                               : SplitBehavior::contiguous
    );
  }
  if (type == "Punctuation") {
    auto behavior = json.find("behavior");
    return std::make_unique<AttributeSplit>(
        unicode::punctuation,
        behavior ? parse_split_behavior(*behavior) : SplitBehavior::isolated
    );
  }
  if (type == "WhitespaceSplit") {
    return std::make_unique<AttributeSplit>(
        unicode::space, SplitBehavior::removed
    );
  }
  if (type == "Whitespace") {
    return std::make_unique<Whitespace>();
  }
  if (type == "CharDelimiterSplit") {
    return std::make_unique<CharDelimiterSplit>(json);
  }
  if (type == "FixedLength") {
    return std::make_unique<FixedLength>(json);
  }
  if (type == "UnicodeScripts") {
    return std::make_unique<UnicodeScripts>();
  }
  if (type == "Metaspace") {
    return std::make_unique<MetaspaceStep>(json);
  }
  unsupported_type(json, "pre-tokenizer", type);
}

}  // namespace

/// Leads pieces through the steps from `step_` on.
class PreTokenizer::Chain : public PieceSink {
 public:
  Chain(const PreTokenizer& owner, size_t step, PieceSink& sink)
      : owner_(owner), step_(step), sink_(sink) {}

  void take(const Piece& piece) override {
    if (piece.size() == 0) {
      return;
    }
    if (step_ == owner_.steps_.size()) {
      sink_.take(piece);
      return;
    }
    Chain next(owner_, step_ + 1, sink_);
    owner_.steps_[step_]->split(piece, next);
  }

 private:
  const PreTokenizer& owner_;
  size_t step_;
  PieceSink& sink_;
};

PreTokenizer::PreTokenizer(const Json& json, bool model_reads_bytes) {
  add(json, model_reads_bytes);
}

void PreTokenizer::add(const Json& json, bool last) {
  const std::string& type = json.at("type").as_string();
  std::unique_ptr<PreTokenizerStep> step;
  if (type == "Sequence") {
    std::vector<Json> elements = json.at("pretokenizers").elements();
    for (size_t i = 0; i < elements.size(); ++i) {
      add(elements[i], last && i + 1 == elements.size());
    }
    return;
  }
  if (type == "BertPreTokenizer") {
    add(std::make_unique<AttributeSplit>(
            unicode::space, SplitBehavior::removed
        ),
        json);
    step = std::make_unique<AttributeSplit>(
        unicode::punctuation, SplitBehavior::isolated
    );
  } else if (type == "ByteLevel") {
    step = std::make_unique<ByteLevel>(json, !last);
    gives_bytes_ = last;
    has_byte_level_ = true;
  } else {
    step = make_step(json, type);
  }
  add(std::move(step), json);
}

void PreTokenizer::add(
    std::unique_ptr<PreTokenizerStep> step, const Json& json
) {
  if (steps_.size() == max_steps) {
    json.reject("more than 64 pre-tokenizers");
  }
  needs_origins_ |= step->needs_origins();
  steps_.push_back(std::move(step));
}

void PreTokenizer::append(std::unique_ptr<PreTokenizerStep> step) {
  needs_origins_ |= step->needs_origins();
  steps_.push_back(std::move(step));
}

void PreTokenizer::run(const Piece& piece, PieceSink& sink) const {
  Chain(*this, 0, sink).take(piece);
}

}  // namespace mlxcel::tokenizer
