#include "mlxcel/tokenizer/decode/decode_steps.h"

#include <algorithm>

#include "mlxcel/tokenizer/split/byte_level.h"
#include "mlxcel/tokenizer/split/pattern.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";
constexpr int64_t max_strip = 1024;  // characters

/// A step that must see the one joined token whole.
class WholeStep : public DecodeStep {
 public:
  explicit WholeStep(std::unique_ptr<DecodeStep> step)
      : step_(std::move(step)) {}

  void push(std::string_view token) override {
    whole_ += token;
  }
  void finish() override {
    step_->set_next(&next());
    step_->push(whole_);
    step_->finish();
    whole_.clear();
  }

 private:
  std::unique_ptr<DecodeStep> step_;
  std::string whole_;
};

class Join : public DecodeStep {
 public:
  explicit Join(const char* separator) : separator_(separator) {}

  void push(std::string_view token) override {
    if (!first_ && !separator_.empty()) {
      next().push(separator_);
    }
    first_ = false;
    next().push(token);
  }
  void finish() override {}

 private:
  std::string separator_;
  bool first_ = true;
};

/// Joins the bytes of all tokens and gives out whole characters.
class ByteLevel : public DecodeStep {
 public:
  explicit ByteLevel(bool early) : early_(early) {}

  void push(std::string_view token) override {
    append_from_byte_level(bytes_, token);
    if (early_) {
      give(utf8::certain_prefix(bytes_));
    }
  }
  void finish() override {
    give(bytes_.size());
  }

 private:
  void give(size_t count) {
    if (count == 0) {
      return;
    }
    text_.clear();
    utf8::append_lossy(text_, std::string_view(bytes_).substr(0, count));
    next().push(text_);
    bytes_.erase(0, count);
  }

  bool early_;
  std::string bytes_;
  std::string text_;
};

/// The byte of a token such as <0x0A>, or -1. Accepts what Rust's
/// u8::from_str_radix does: a plus sign in place of the first digit.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return -1;
  }
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  int high = token[3] == '+' ? 0 : digit(token[3]);
  int low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/// Turns each run of byte tokens into text, or into as many U+FFFD if it is
/// no UTF-8. Early, characters come as they are completed.
class ByteFallback : public DecodeStep {
 public:
  explicit ByteFallback(bool early) : early_(early) {}

  void push(std::string_view token) override {
    int byte = byte_of(token);
    if (byte < 0) {
      finish();
      next().push(token);
      return;
    }
    run_ += static_cast<char>(byte);
    if (!early_) {
      return;
    }
    if (!spoilt_ && utf8::valid(run_)) {
      give();
    } else if (spoilt_ || utf8::certain_prefix(run_) != 0) {
      spoilt_ = true;
      give_up();
    }
  }

  void finish() override {
    if (!run_.empty() && utf8::valid(run_)) {
      give();
    } else {
      give_up();
    }
    spoilt_ = false;
  }

 private:
  void give() {
    next().push(run_);
    run_.clear();
  }
  void give_up() {
    for (size_t i = 0; i < run_.size(); ++i) {
      next().push(replacement);
    }
    run_.clear();
  }

  bool early_;
  bool spoilt_ = false;  // a byte of this run was invalid
  std::string run_;
};

class Replace : public DecodeStep {
 public:
  explicit Replace(std::shared_ptr<const DecodeReplace> replace)
      : replace_(std::move(replace)) {}

  void push(std::string_view token) override {
    text_.clear();
    RegexScan scan(*replace_->pattern, token);
    Regex::Match match{};
    size_t done = 0;
    while (scan.next(match)) {
      text_ += token.substr(done, match.begin - done);
      text_ += replace_->content;
      done = match.end;
    }
    text_ += token.substr(done);
    next().push(text_);
  }
  void finish() override {}

 private:
  std::shared_ptr<const DecodeReplace> replace_;
  std::string text_;
};

/// Replaces a literal in one token that comes in fragments. Keeps back what
/// may be the start of the literal.
class ReplaceInFragments : public DecodeStep {
 public:
  explicit ReplaceInFragments(std::shared_ptr<const DecodeReplace> replace)
      : replace_(std::move(replace)) {}

  void push(std::string_view fragment) override {
    const std::string& literal = replace_->literal;
    held_ += fragment;
    std::string text;
    size_t done = 0;
    for (size_t at = held_.find(literal); at != std::string::npos;
         at = held_.find(literal, done)) {
      text.append(held_, done, at - done);
      text += replace_->content;
      done = at + literal.size();
    }
    std::string_view rest = std::string_view(held_).substr(done);
    size_t keep = std::min(rest.size(), literal.size() - 1);
    while (!literal.starts_with(rest.substr(rest.size() - keep))) {
      --keep;
    }
    text += rest.substr(0, rest.size() - keep);
    held_.erase(0, held_.size() - keep);
    if (!text.empty()) {
      next().push(text);
    }
  }
  void finish() override {
    next().push(held_);
    held_.clear();
  }

 private:
  std::shared_ptr<const DecodeReplace> replace_;
  std::string held_;
};

/// Strips each token, or one that comes in fragments.
class Strip : public DecodeStep {
 public:
  Strip(const DecodeStrip& strip, bool joined)
      : strip_(strip), joined_(joined), left_(strip.start) {}

  void push(std::string_view token) override {
    while (left_ > 0 && !token.empty()) {
      if (!token.starts_with(strip_.content)) {
        left_ = 0;
        break;
      }
      token.remove_prefix(strip_.content.size());
      --left_;
    }
    held_ += token;
    size_t end = held_.size();
    for (uint64_t i = 0; i < strip_.stop; ++i) {
      if (!std::string_view(held_).substr(0, end).ends_with(strip_.content)) {
        break;
      }
      end -= strip_.content.size();
    }
    if (!joined_) {
      next().push(std::string_view(held_).substr(0, end));
      held_.clear();
      left_ = strip_.start;
    } else if (end > 0) {
      next().push(std::string_view(held_).substr(0, end));
      held_.erase(0, end);
    }
  }
  void finish() override {
    held_.clear();
  }

 private:
  DecodeStrip strip_;
  bool joined_;
  uint64_t left_;     // how many may still go
  std::string held_;  // what may be the end
};

/// Marks become spaces; in the first token they vanish, if marks are put in
/// front of texts.
class MetaspaceDecode : public DecodeStep {
 public:
  MetaspaceDecode(std::shared_ptr<const Metaspace> metaspace, bool joined)
      : metaspace_(std::move(metaspace)), joined_(joined) {}

  void push(std::string_view token) override {
    bool vanish = first_ && metaspace_->scheme() != Metaspace::Scheme::never;
    const std::string& mark = metaspace_->mark();
    text_.clear();
    size_t done = 0;
    for (size_t at = token.find(mark); at != std::string_view::npos;
         at = token.find(mark, done)) {
      text_ += token.substr(done, at - done);
      text_ += vanish ? "" : " ";
      done = at + mark.size();
    }
    text_ += token.substr(done);
    first_ = first_ && joined_;
    next().push(text_);
  }
  void finish() override {}

 private:
  std::shared_ptr<const Metaspace> metaspace_;
  bool joined_;
  bool first_ = true;
  std::string text_;
};

std::unique_ptr<DecodeStep> whole(std::unique_ptr<DecodeStep> step) {
  return std::make_unique<WholeStep>(std::move(step));
}

}  // namespace

std::unique_ptr<DecodeStep> make_whole_step(std::unique_ptr<DecodeStep> step) {
  return whole(std::move(step));
}

DecodeReplace::DecodeReplace(const Json& json)
    : pattern(make_pattern(json.at("pattern"))),
      literal(json.at("pattern").string_or("String", "")),
      content(json.at("content").as_string()) {}

DecodeStrip::DecodeStrip(const Json& json)
    : content(json.at("content").as_string()),
      start(static_cast<uint64_t>(json.at("start").as_int(0, max_strip))),
      stop(static_cast<uint64_t>(json.at("stop").as_int(0, max_strip))) {
  char32_t c = 0;
  if (!utf8::single(content, c)) {
    json.at("content").reject("expected one character");
  }
}

std::unique_ptr<DecodeStep> make_join_step(const char* separator) {
  return std::make_unique<Join>(separator);
}

std::unique_ptr<DecodeStep> make_byte_level_step(DecodeMode mode) {
  auto step = std::make_unique<ByteLevel>(mode.early);
  return mode.joined ? whole(std::move(step)) : std::move(step);
}

std::unique_ptr<DecodeStep> make_byte_fallback_step(DecodeMode mode) {
  auto step = std::make_unique<ByteFallback>(mode.early);
  return mode.joined ? whole(std::move(step)) : std::move(step);
}

std::unique_ptr<DecodeStep> make_replace_step(
    std::shared_ptr<const DecodeReplace> replace, DecodeMode mode
) {
  if (!mode.joined) {
    return std::make_unique<Replace>(std::move(replace));
  }
  if (!replace->literal.empty()) {
    return std::make_unique<ReplaceInFragments>(std::move(replace));
  }
  return whole(std::make_unique<Replace>(std::move(replace)));
}

std::unique_ptr<DecodeStep> make_strip_step(
    const DecodeStrip& strip, DecodeMode mode
) {
  return std::make_unique<Strip>(strip, mode.joined);
}

std::unique_ptr<DecodeStep> make_metaspace_step(
    std::shared_ptr<const Metaspace> metaspace, DecodeMode mode
) {
  return std::make_unique<MetaspaceDecode>(std::move(metaspace), mode.joined);
}

}  // namespace mlxcel::tokenizer
