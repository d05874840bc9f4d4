#pragma once

#include <memory>
#include <string>
#include <utility>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/interpreter.h"

// What the interpreter changes while it works on a part of the template, and
// sets back when it is done.

namespace mlxcel::chat {

/// Counts one level of evaluation, and one step.
class Interpreter::Nest {
 public:
  explicit Nest(Interpreter& interpreter) : interpreter_(interpreter) {
    interpreter_.budget_.step();
    if (interpreter_.levels_ >= kMaxLevels) {
      limit_fault("calls and expressions nested too deeply");
    }
    ++interpreter_.levels_;
  }
  ~Nest() {
    --interpreter_.levels_;
  }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;

 private:
  // Keeps the stack below 2 MiB.
  static constexpr int kMaxLevels = 2500;

  Interpreter& interpreter_;
};

/// Counts one running macro or recursive loop.
class Interpreter::CallLevel {
 public:
  explicit CallLevel(Interpreter& interpreter) : interpreter_(interpreter) {
    if (interpreter_.calls_ >= interpreter_.budget_.limits().calls) {
      limit_fault("too many calls inside each other");
    }
    ++interpreter_.calls_;
  }
  ~CallLevel() {
    --interpreter_.calls_;
  }
  CallLevel(const CallLevel&) = delete;
  CallLevel& operator=(const CallLevel&) = delete;

 private:
  Interpreter& interpreter_;
};

/// Collects what is printed in a string of its own.
class Interpreter::Capture {
 public:
  Capture(Interpreter& interpreter, std::string& text)
      : interpreter_(interpreter),
        outer_(std::exchange(interpreter.out_, &text)) {}
  ~Capture() {
    interpreter_.out_ = outer_;
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Interpreter& interpreter_;
  std::string* outer_;
};

/// Makes an activation the running one.
class Interpreter::Entry {
 public:
  Entry(Interpreter& interpreter, Activation* frame)
      : interpreter_(interpreter),
        outer_(std::exchange(interpreter.frame_, frame)) {}
  ~Entry() {
    interpreter_.frame_ = outer_;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  Interpreter& interpreter_;
  Activation* outer_;
};

/// Runs a function: makes its activation and enters it. The activation goes
/// with it, unless something captured it.
class Interpreter::Frame {
 public:
  Frame(Interpreter& interpreter, const Function& function, Activation* outer)
      : interpreter_(interpreter),
        activation_(std::make_unique<Activation>()),
        entry_(interpreter, activation_.get()) {
    activation_->slots.resize(function.slots);
    activation_->outer = outer;
    if (outer) {
      activation_->surroundings = outer->surroundings;
    }
  }
  ~Frame() {
    if (activation_->captured) {
      interpreter_.captured_.push_back(std::move(activation_));
    }
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  Interpreter& interpreter_;
  std::unique_ptr<Activation> activation_;
  Entry entry_;
};

}  // namespace mlxcel::chat
