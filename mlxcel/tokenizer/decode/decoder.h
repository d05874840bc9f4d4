#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/core/json.h"

namespace mlxcel::tokenizer {

/// One step on the way from tokens to text. Gives what it makes to the next.
class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  virtual void push(std::string_view token) = 0;
  virtual void finish() = 0;

  void set_next(DecodeStep* next) {
    next_ = next;
  }

 protected:
  DecodeStep& next() {
    return *next_;
  }

 private:
  DecodeStep* next_ = nullptr;
};

/// How a step is to work.
struct DecodeMode {
  /// A step before has joined all tokens: what is pushed are fragments of
  /// one token.
  bool joined;
  /// Give text as soon as it is complete, instead of what the whole would
  /// make of it. Differs where bytes turn out invalid later.
  bool early;
};

/// A text in the making.
class DecodeStream {
 public:
  explicit DecodeStream(std::vector<std::unique_ptr<DecodeStep>> steps);
  ~DecodeStream();

  /// Append to `out` what the token adds, and what is left at the end.
  void push(std::string_view token, std::string& out);
  void finish(std::string& out);

 private:
  class Output;
  std::vector<std::unique_ptr<DecodeStep>> steps_;
  std::unique_ptr<Output> output_;
};

/// Turns the tokens of ids into text.
class Decoder {
 public:
  /// Joins tokens with a space, as the official library does without a
  /// decoder.
  Decoder();
  /// The `decoder` of a tokenizer.json file. Throws Error(unsupported) for a
  /// type that is not implemented.
  explicit Decoder(const Json& json);
  static Decoder byte_level();
  /// One step of another kind.
  using Maker = std::function<std::unique_ptr<DecodeStep>(DecodeMode)>;
  explicit Decoder(Maker make);

  /// `early`: see DecodeMode.
  DecodeStream stream(bool early) const;

 private:
  struct Entry {
    Maker make;
    bool joins;  // gives one token, whatever it gets
  };

  void add(const Json& json);
  void add(Maker make, bool joins = false);

  std::vector<Entry> entries_;
};

}  // namespace mlxcel::tokenizer
