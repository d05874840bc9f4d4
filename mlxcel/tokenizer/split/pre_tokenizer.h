#pragma once

#include <memory>
#include <vector>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/normalize/text.h"

namespace mlxcel::tokenizer {

/// One step of cutting a text into the pieces that the model encodes.
class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  /// Cuts a piece that is not empty. The pieces given to `sink` may be empty
  /// and may be of a text that is gone afterwards.
  virtual void split(const Piece& piece, PieceSink& sink) const = 0;
  /// Whether the step asks where in the input a piece begins.
  virtual bool needs_origins() const {
    return false;
  }
};

/// The `pre_tokenizer` of a tokenizer.json file; by default none.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  /// `model_reads_bytes`: see gives_bytes. Throws Error(unsupported) for a
  /// type that is not implemented.
  PreTokenizer(const Json& json, bool model_reads_bytes);

  /// Adds a step behind the others, before a model that reads characters.
  void append(std::unique_ptr<PreTokenizerStep> step);

  /// Gives the final pieces, none of them empty, to `sink`.
  void run(const Piece& piece, PieceSink& sink) const;

  /// Whether the pieces are bytes that the model must read in the byte-level
  /// alphabet: so it is where ByteLevel comes last and the model can do that.
  bool gives_bytes() const {
    return gives_bytes_;
  }
  /// Whether ByteLevel is one of the steps.
  bool has_byte_level() const {
    return has_byte_level_;
  }
  bool needs_origins() const {
    return needs_origins_;
  }

 private:
  class Chain;
  void add(const Json& json, bool last);
  void add(std::unique_ptr<PreTokenizerStep> step, const Json& json);

  std::vector<std::unique_ptr<PreTokenizerStep>> steps_;
  bool gives_bytes_ = false;
  bool has_byte_level_ = false;
  bool needs_origins_ = false;
};

}  // namespace mlxcel::tokenizer
