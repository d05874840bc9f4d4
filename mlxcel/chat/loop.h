#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "mlxcel/chat/interpreter.h"

namespace mlxcel::chat {

/// The variable `loop`. Looks one item ahead when it is asked whether it is at
/// the last, and reads all when it is asked for the length of a source that
/// has none, as Jinja's does.
struct Loop final : Callable, std::enable_shared_from_this<Loop> {
  Loop(
      Interpreter& interpreter,
      const For& node,
      const Value& iterable,
      Activation* frame,
      int depth0
  );

  /// Moves to the next item; false at the end.
  bool next(Value& item);

  std::string describe() const override;
  Value attribute(std::string_view name) const override;
  /// Renders the loop for inner data: only of a recursive loop.
  Value call(Interpreter& interpreter, Arguments& arguments) override;
  /// `loop.cycle`, `loop.changed`.
  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);
  void clear();

 private:
  bool peek() const;
  int64_t length() const;
  bool pull(Value& item) const;

  Interpreter& interpreter_;
  const For& node_;
  Value iterable_;
  Activation* frame_;
  int64_t depth0_;
  int64_t index0_ = -1;
  Value before_;
  Value current_;
  Value last_changed_;
  bool kept_ = false;
  // Filled by looking ahead.
  mutable Cursor cursor_;
  mutable std::deque<Value> ahead_;
  mutable std::optional<int64_t> length_;
};

}  // namespace mlxcel::chat
