#include "mlxcel/chat/loop.h"

#include <fmt/format.h>

#include "mlxcel/chat/fault.h"

namespace mlxcel::chat {

Loop::Loop(
    Interpreter& interpreter,
    const For& node,
    const Value& iterable,
    Activation* frame,
    int depth0
)
    : interpreter_(interpreter),
      node_(node),
      iterable_(iterable),
      frame_(frame),
      depth0_(depth0),
      cursor_(iterable) {
  depth = depth_around({iterable});
}

bool Loop::pull(Value& item) const {
  return interpreter_.next_filtered(node_, cursor_, frame_, item);
}

bool Loop::next(Value& item) {
  if (!ahead_.empty()) {
    item = std::move(ahead_.front());
    ahead_.pop_front();
  } else if (!pull(item)) {
    return false;
  }
  ++index0_;
  before_ = std::move(current_);
  current_ = item;
  return true;
}

bool Loop::peek() const {
  Value item;
  if (ahead_.empty() && pull(item)) {
    ahead_.push_back(std::move(item));
  }
  return !ahead_.empty();
}

int64_t Loop::length() const {
  if (!length_) {
    if (!node_.test && has_length(iterable_)) {
      length_ = length_of(iterable_);
    } else {
      for (Value item; pull(item);) {
        check_item_count(ahead_.size());
        ahead_.push_back(std::move(item));
      }
      length_ = index0_ + 1 + static_cast<int64_t>(ahead_.size());
    }
  }
  return *length_;
}

std::string Loop::describe() const {
  return fmt::format("<LoopContext {}/{}>", index0_ + 1, length());
}

Value Loop::attribute(std::string_view name) const {
  if (name == "index") {
    return Value::of(index0_ + 1);
  }
  if (name == "index0") {
    return Value::of(index0_);
  }
  if (name == "first") {
    return Value::of(index0_ == 0);
  }
  if (name == "last") {
    return Value::of(!peek());
  }
  if (name == "length") {
    return Value::of(length());
  }
  if (name == "revindex") {
    return Value::of(length() - index0_);
  }
  if (name == "revindex0") {
    return Value::of(length() - index0_ - 1);
  }
  if (name == "previtem") {
    return index0_ == 0 ? Value::undefined("there is no previous item")
                        : before_;
  }
  if (name == "nextitem") {
    return peek() ? ahead_.front() : Value::undefined("there is no next item");
  }
  if (name == "depth") {
    return Value::of(depth0_ + 1);
  }
  if (name == "depth0") {
    return Value::of(depth0_);
  }
  return Value();
}

Value Loop::call(Interpreter& interpreter, Arguments& arguments) {
  if (!node_.recursive) {
    fault("only a loop marked 'recursive' can be called");
  }
  Parameters given("loop", arguments, {"iterable"}, 1);
  return Value::of(interpreter.run_recursive_loop(
      node_, given[0], frame_->outer, static_cast<int>(depth0_) + 1
  ));
}

Value Loop::cycle(const Arguments& arguments) const {
  const auto& items = arguments.positional;
  if (items.empty() || !arguments.named.empty()) {
    fault("loop.cycle: needs the items to cycle through");
  }
  return items[static_cast<size_t>(index0_) % items.size()];
}

Value Loop::changed(const Arguments& arguments) {
  if (!arguments.named.empty()) {
    fault("loop.changed: takes no named arguments");
  }
  Value value = Value::tuple(arguments.positional);
  if (!last_changed_.is(Kind::missing) && equal(last_changed_, value)) {
    return Value::of(false);
  }
  if (!kept_) {
    kept_ = true;
    interpreter_.keep(shared_from_this());
  }
  last_changed_ = std::move(value);
  return Value::of(true);
}

void Loop::clear() {
  Value last = std::move(last_changed_);
  last_changed_ = Value();
}

}  // namespace mlxcel::chat
