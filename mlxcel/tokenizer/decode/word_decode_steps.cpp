#include <array>

#include "mlxcel/tokenizer/decode/decode_steps.h"

namespace mlxcel::tokenizer {

namespace {

std::string replaced(
    std::string_view text, std::string_view from, std::string_view to
) {
  std::string out;
  if (from.empty()) {
    // Between all characters, as Rust's str::replace has it.
    for (size_t i = 0; i < text.size(); ++i) {
      bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
      out.append(begins ? to : "");
      out += text[i];
    }
    return out.append(to);
  }
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string_view::npos;
       at = text.find(from, done)) {
    out += text.substr(done, at - done);
    out += to;
    done = at + from.size();
  }
  return out.append(text.substr(done));
}

/// Takes back what tokenizing English does (wordpiece.rs, cleanup).
std::string clean_up(std::string text) {
  struct Rule {
    std::string_view from;
    std::string_view to;
  };
  static constexpr std::array<Rule, 11> rules = {{
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" do not", " don't"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  }};
  for (const Rule& rule : rules) {
    if (text.find(rule.from) != std::string::npos) {
      text = replaced(text, rule.from, rule.to);
    }
  }
  return text;
}

class WordPieceStep : public DecodeStep {
 public:
  explicit WordPieceStep(std::shared_ptr<const DecodeWordPiece> word_piece)
      : word_piece_(std::move(word_piece)) {}

  void push(std::string_view token) override {
    std::string text;
    if (!first_ && !token.starts_with(word_piece_->prefix)) {
      text = " ";
    } else if (!first_) {
      token.remove_prefix(word_piece_->prefix.size());
    }
    first_ = false;
    text += token;
    next().push(word_piece_->cleanup ? clean_up(std::move(text)) : text);
  }
  void finish() override {}

 private:
  std::shared_ptr<const DecodeWordPiece> word_piece_;
  bool first_ = true;
};

class CtcStep : public DecodeStep {
 public:
  explicit CtcStep(std::shared_ptr<const DecodeCtc> ctc)
      : ctc_(std::move(ctc)) {}

  void push(std::string_view token) override {
    if (!first_ && token == previous_) {
      return;
    }
    first_ = false;
    previous_ = token;
    std::string text = replaced(token, ctc_->pad_token, "");
    if (ctc_->cleanup) {
      text =
          replaced(clean_up(std::move(text)), ctc_->word_delimiter_token, " ");
    }
    if (!text.empty()) {
      next().push(text);
    }
  }
  void finish() override {}

 private:
  std::shared_ptr<const DecodeCtc> ctc_;
  std::string previous_;
  bool first_ = true;
};

/// Keeps a token back until it is known whether it is the last.
class BpeStep : public DecodeStep {
 public:
  explicit BpeStep(std::string suffix) : suffix_(std::move(suffix)) {}

  void push(std::string_view token) override {
    if (holds_) {
      next().push(replaced(held_, suffix_, " "));
    }
    holds_ = false;
    // What has no suffix stays the same, be it last or not.
    if (token.find(suffix_) == std::string_view::npos) {
      next().push(token);
      return;
    }
    held_ = token;
    holds_ = true;
  }
  void finish() override {
    if (holds_) {
      next().push(replaced(held_, suffix_, ""));
      holds_ = false;
    }
  }

 private:
  std::string suffix_;
  std::string held_;
  bool holds_ = false;
};

std::unique_ptr<DecodeStep> in_mode(
    std::unique_ptr<DecodeStep> step, DecodeMode mode
) {
  if (mode.joined) {
    return make_whole_step(std::move(step));
  }
  return step;
}

}  // namespace

DecodeWordPiece::DecodeWordPiece(const Json& json)
    : prefix(json.at("prefix").as_string()),
      cleanup(json.at("cleanup").as_bool()) {}

DecodeCtc::DecodeCtc(const Json& json)
    : pad_token(json.at("pad_token").as_string()),
      word_delimiter_token(json.at("word_delimiter_token").as_string()),
      cleanup(json.at("cleanup").as_bool()) {}

std::unique_ptr<DecodeStep> make_word_piece_step(
    std::shared_ptr<const DecodeWordPiece> word_piece, DecodeMode mode
) {
  return in_mode(std::make_unique<WordPieceStep>(std::move(word_piece)), mode);
}

std::unique_ptr<DecodeStep> make_ctc_step(
    std::shared_ptr<const DecodeCtc> ctc, DecodeMode mode
) {
  return in_mode(std::make_unique<CtcStep>(std::move(ctc)), mode);
}

std::unique_ptr<DecodeStep> make_bpe_step(std::string suffix, DecodeMode mode) {
  return in_mode(std::make_unique<BpeStep>(std::move(suffix)), mode);
}

}  // namespace mlxcel::tokenizer
