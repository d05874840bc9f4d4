#include "mlxcel/chat/interpreter.h"

#include <fmt/format.h>

#include <utility>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/interpreter_guards.h"
#include "mlxcel/chat/loop.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

constexpr size_t kMaxMembers = 10'000;

struct MacroObject final : Callable {
  MacroObject(const Macro& m, Activation* o) : macro(m), outer(o) {}

  std::string describe() const override {
    return macro.name.empty() ? "<Macro anonymous>"
                              : fmt::format("<Macro '{}'>", macro.name);
  }
  Value attribute(std::string_view name) const override {
    if (name == "name") {
      return macro.name.empty() ? Value::none() : Value::of(macro.name);
    }
    if (name == "arguments") {
      std::vector<Value> names;
      for (const Parameter& parameter : macro.parameters) {
        names.push_back(Value::of(parameter.name));
      }
      return Value::tuple(std::move(names));
    }
    if (name == "catch_kwargs") {
      return Value::of(macro.kwargs_slot >= 0);
    }
    if (name == "catch_varargs") {
      return Value::of(macro.varargs_slot >= 0);
    }
    if (name == "caller") {
      return Value::of(macro.caller_slot >= 0);
    }
    return Value();
  }
  Value call(Interpreter& interpreter, Arguments& arguments) override {
    return Value::of(interpreter.run_macro(macro, outer, arguments));
  }

  const Macro& macro;
  Activation* outer;
};

}  // namespace

Interpreter::Interpreter(
    const Program& program, const Context& context, std::optional<int64_t> now
)
    : program_(program),
      context_(context),
      now_(now),
      budget_(*Budget::active()) {}

// What can hold itself is emptied first, so that nothing is left behind.
Interpreter::~Interpreter() {
  for (const auto& space : spaces_) {
    auto attributes = std::move(space->attributes);
    space->attributes.clear();
  }
  for (const auto& loop : loops_) {
    loop->clear();
  }
}

std::string Interpreter::run() {
  std::string text;
  captured_.push_back(std::make_unique<Activation>());
  Activation& root = *captured_.back();
  root.slots.resize(program_.function.slots);
  root.captured = true;
  Entry entry(*this, &root);
  result_ = &text;
  Capture capture(*this, text);
  enter(program_.loads);
  execute(program_.body);
  return text;
}

Value& Interpreter::variable(VarRef ref) {
  Activation* at = frame_;
  for (uint32_t i = 0; i < ref.hops; ++i) {
    at = at->outer;
  }
  return at->slots[ref.slot];
}

Value Interpreter::find_global(const Value& name) const {
  auto find = [&name](const Context& context) -> const Value* {
    for (const auto& [own, value] : context) {
      if (own == name.view()) {
        return &value;
      }
    }
    return nullptr;
  };
  for (const Surroundings* at = frame_->surroundings.get(); at;
       at = at->outer.get()) {
    if (const Value* value = find(at->variables)) {
      return *value;
    }
  }
  for (const Context* context : {&exported_, &context_}) {
    if (const Value* value = find(*context)) {
      return *value;
    }
  }
  return find_global_function(name.view());
}

void Interpreter::enter(const Loads& loads) {
  for (const Load& load : loads) {
    Value& slot = frame_->slots[load.slot];
    switch (load.from) {
      case Load::From::nothing:
        slot = Value();
        break;
      case Load::From::context:
        slot = find_global(load.name);
        break;
      case Load::From::outer:
        slot = variable(load.outer);
        break;
    }
  }
}

void Interpreter::print(const Value& value) {
  append_string(*out_, value);
  check_text_size(out_->size());
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const auto& stmt : body) {
    Flow flow = execute(*stmt);
    if (flow != Flow::next) {
      return flow;
    }
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Stmt& stmt) {
  if (stmt.type == StmtType::text) {
    *out_ += static_cast<const TextStmt&>(stmt).text;
    budget_.step();
    check_text_size(out_->size());
    return Flow::next;
  }
  position_ = stmt.position;
  Nest nest(*this);
  switch (stmt.type) {
    case StmtType::print:
      print(evaluate(*static_cast<const Print&>(stmt).value));
      break;
    case StmtType::conditional:
      return execute_if(static_cast<const If&>(stmt));
    case StmtType::loop: {
      const auto& node = static_cast<const For&>(stmt);
      Value iterable = evaluate(*node.iterable);
      position_ = node.position;
      if (!node.recursive) {
        return execute_loop(node, iterable, 0);
      }
      *out_ += run_recursive_loop(node, iterable, frame_, 0);
      break;
    }
    case StmtType::assign: {
      const auto& node = static_cast<const Assign&>(stmt);
      check_target(node.target);
      Value value = evaluate(*node.value);
      position_ = node.position;
      assign(node.target, value);
      break;
    }
    case StmtType::assign_block:
      return execute_assign_block(static_cast<const AssignBlock&>(stmt));
    case StmtType::macro: {
      const auto& node = static_cast<const MacroStmt&>(stmt);
      assign(node.target, make_macro(node.macro));
      break;
    }
    case StmtType::call_block:
      execute_call_block(static_cast<const CallBlock&>(stmt));
      break;
    case StmtType::filter_block:
      return execute_filter_block(static_cast<const FilterBlock&>(stmt));
    case StmtType::with:
      return execute_with(static_cast<const With&>(stmt));
    case StmtType::block:
      execute_block(static_cast<const Block&>(stmt));
      break;
    case StmtType::autoescape:
      return execute_autoescape(static_cast<const Autoescape&>(stmt));
    case StmtType::generation:
      execute_generation(static_cast<const Generation&>(stmt));
      break;
    case StmtType::break_loop:
      return Flow::break_loop;
    case StmtType::continue_loop:
      return Flow::continue_loop;
    default:
      fault(fmt::format(
          "'{}' needs other templates, and there are none",
          static_cast<const Unsupported&>(stmt).name
      ));
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute_if(const If& node) {
  for (const auto& [test, body] : node.branches) {
    if (truth(evaluate(*test))) {
      return execute(body);
    }
  }
  return execute(node.otherwise);
}

Interpreter::Flow Interpreter::loop_body(
    const For& node, const Value& item, bool& completed
) {
  budget_.step();
  position_ = node.position;
  assign(node.target, item);
  enter(node.body_loads);
  Flow flow = execute(node.body);
  completed = completed || flow == Flow::next;
  return flow;
}

// As Jinja has it, `else` runs unless some round went through to the end of
// the body: it also runs when each was cut short by `continue` or `break`.
Interpreter::Flow Interpreter::execute_loop(
    const For& node, const Value& iterable, int depth
) {
  bool completed = false;
  Value item;
  if (node.test) {
    enter(node.test_loads);
  }
  if (node.extended) {
    auto loop = std::make_shared<Loop>(*this, node, iterable, frame_, depth);
    if (node.test || node.recursive) {
      capture_frame();
    }
    Value value = Value::loop(loop);
    while (loop->next(item)) {
      frame_->slots[node.loop_slot] = value;
      if (loop_body(node, item, completed) == Flow::break_loop) {
        break;
      }
    }
  } else {
    Cursor cursor(iterable);
    while (node.test ? next_filtered(node, cursor, frame_, item)
                     : cursor.next(item)) {
      if (loop_body(node, item, completed) == Flow::break_loop) {
        break;
      }
    }
  }
  if (completed || node.otherwise.empty()) {
    return Flow::next;
  }
  enter(node.else_loads);
  return execute(node.otherwise);
}

bool Interpreter::next_filtered(
    const For& node, Cursor& cursor, Activation* frame, Value& item
) {
  if (!node.test) {
    return cursor.next(item);
  }
  Entry entry(*this, frame);
  while (cursor.next(item)) {
    assign(node.test_target, item);
    if (truth(evaluate(*node.test))) {
      return true;
    }
  }
  return false;
}

std::string Interpreter::run_recursive_loop(
    const For& node, const Value& iterable, Activation* outer, int depth
) {
  CallLevel level(*this);
  Frame frame(*this, node.function, outer);
  std::string text;
  Capture capture(*this, text);
  execute_loop(node, iterable, depth);
  return text;
}

Interpreter::Flow Interpreter::execute_assign_block(const AssignBlock& node) {
  std::string text;
  {
    Capture capture(*this, text);
    enter(node.loads);
    Flow flow = execute(node.body);
    if (flow != Flow::next) {
      return flow;
    }
  }
  Value value = Value::of(std::move(text));
  if (node.filter) {
    value = evaluate_filter(static_cast<const Filter&>(*node.filter), &value);
  }
  position_ = node.position;
  check_target(node.target);
  assign(node.target, value);
  return Flow::next;
}

Interpreter::Flow Interpreter::execute_filter_block(const FilterBlock& node) {
  std::string text;
  enter(node.loads);
  {
    Capture capture(*this, text);
    Flow flow = execute(node.body);
    if (flow != Flow::next) {
      return flow;
    }
  }
  Value value = Value::of(std::move(text));
  print(evaluate_filter(static_cast<const Filter&>(*node.filter), &value));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute_with(const With& node) {
  enter(node.loads);
  for (const auto& [target, expr] : node.values) {
    Value value = evaluate(*expr);
    assign(target, value);
  }
  return execute(node.body);
}

Interpreter::Flow Interpreter::execute_autoescape(const Autoescape& node) {
  enter(node.loads);
  if (truth(evaluate(*node.on))) {
    fault("automatic escaping is not supported");
  }
  return execute(node.body);
}

void Interpreter::execute_call_block(const CallBlock& node) {
  Value caller = make_macro(node.caller);
  print(evaluate_call(static_cast<const Call&>(*node.call), &caller));
}

void Interpreter::execute_block(const Block& node) {
  if (node.required) {
    fault(fmt::format("block '{}' is required, but empty", node.name));
  }
  std::shared_ptr<const Surroundings> surroundings = frame_->surroundings;
  if (node.scoped) {
    auto around = std::make_shared<Surroundings>();
    around->outer = std::move(surroundings);
    for (const auto& [name, ref] : node.around) {
      const Value& value = variable(ref);
      if (!value.is(Kind::missing)) {
        around->variables.emplace_back(name, value);
      }
    }
    surroundings = std::move(around);
  }
  CallLevel level(*this);
  Frame frame(*this, node.function, nullptr);
  frame_->surroundings = std::move(surroundings);
  enter(node.loads);
  execute(node.body);
}

void Interpreter::execute_generation(const Generation& node) {
  Arguments none;
  std::string text = run_macro(node.macro, frame_, none);
  budget_.allocate(sizeof(GeneratedPart));
  generated_.push_back({result_->size(), count_code_points(text)});
  *out_ += text;
  check_text_size(out_->size());
}

void Interpreter::check_target(const Target& target) {
  if (target.type == Target::Type::attribute &&
      !variable(target.ref).is(Kind::space)) {
    fault(fmt::format(
        "'{}' is no namespace: its attributes cannot be set", target.name.view()
    ));
  }
  for (const Target& item : target.items) {
    check_target(item);
  }
}

void Interpreter::assign(const Target& target, const Value& value) {
  switch (target.type) {
    case Target::Type::name:
      variable(target.ref) = value;
      if (target.exported) {
        set_exported(target.name.view(), value);
      }
      return;
    case Target::Type::attribute:
      set_member(variable(target.ref).space(), target.attribute, value);
      return;
    case Target::Type::tuple:
      break;
  }
  if (!is_iterable(value)) {
    fault(fmt::format("cannot unpack a value of type '{}'", type_name(value)));
  }
  // One more than needed tells that there are too many.
  std::vector<Value> items;
  Cursor cursor(value);
  for (Value item; items.size() <= target.items.size() && cursor.next(item);) {
    items.push_back(item);
  }
  if (items.size() != target.items.size()) {
    fault(fmt::format(
        "expected {} values to unpack, got {}",
        target.items.size(),
        items.size() > target.items.size() ? "more"
                                           : std::to_string(items.size())
    ));
  }
  for (size_t i = 0; i < items.size(); ++i) {
    assign(target.items[i], items[i]);
  }
}

void Interpreter::set_exported(std::string_view name, const Value& value) {
  for (auto& [own, old] : exported_) {
    if (own == name) {
      old = value;
      return;
    }
  }
  exported_.emplace_back(name, value);
}

void Interpreter::set_member(
    Space& space, const std::string& name, const Value& value
) {
  if (name[0] == '_') {
    fault(fmt::format(
        "'{}': names of a namespace cannot start with an underscore", name
    ));
  }
  for (auto& [own, old] : space.attributes) {
    if (own == name) {
      old = value;
      return;
    }
  }
  budget_.allocate(sizeof(Value) + name.size());
  if (space.attributes.size() >= kMaxMembers) {
    limit_fault(fmt::format("a namespace of more than {} names", kMaxMembers));
  }
  space.attributes.emplace_back(name, value);
}

Value Interpreter::make_space(
    const std::vector<std::pair<std::string, Value>>& attributes
) {
  budget_.allocate(sizeof(Space));
  auto space = std::make_shared<Space>();
  spaces_.push_back(space);
  for (const auto& [name, value] : attributes) {
    set_member(*space, name, value);
  }
  return Value::of(std::move(space));
}

void Interpreter::keep(std::shared_ptr<Loop> loop) {
  budget_.allocate(sizeof(Loop));
  loops_.push_back(std::move(loop));
}

// The running activation and those around it stay to the end.
void Interpreter::capture_frame() {
  for (Activation* at = frame_; at && !at->captured; at = at->outer) {
    budget_.allocate(sizeof(Activation) + at->slots.size() * sizeof(Value));
    at->captured = true;
  }
}

Value Interpreter::make_macro(const Macro& macro) {
  capture_frame();
  return Value::of(std::make_shared<MacroObject>(macro, frame_));
}

void Interpreter::bind(
    const Macro& macro, Activation& into, Arguments& arguments
) {
  const char* name = macro.name.empty() ? "caller" : macro.name.c_str();
  auto& given = arguments.positional;
  size_t count = macro.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = macro.parameters[i];
    into.slots[parameter.slot] =
        i < given.size() ? given[i] : arguments.take(parameter.name);
  }
  if (macro.caller_slot >= 0) {
    Value caller = arguments.take("caller");
    into.slots[static_cast<size_t>(macro.caller_slot)] =
        caller.is(Kind::missing) ? Value::undefined("there is no caller")
                                 : caller;
  }
  if (macro.kwargs_slot >= 0) {
    std::vector<std::pair<Value, Value>> entries;
    for (auto& [key, value] : arguments.named) {
      entries.emplace_back(Value::of(key), value);
    }
    into.slots[static_cast<size_t>(macro.kwargs_slot)] =
        Value::dict(std::move(entries));
  } else if (!arguments.named.empty()) {
    fault(fmt::format(
        "macro '{}' takes no argument '{}'", name, arguments.named[0].first
    ));
  }
  if (macro.varargs_slot >= 0) {
    std::vector<Value> rest;
    for (size_t i = count; i < given.size(); ++i) {
      rest.push_back(given[i]);
    }
    into.slots[static_cast<size_t>(macro.varargs_slot)] =
        Value::tuple(std::move(rest));
  } else if (given.size() > count) {
    fault(fmt::format(
        "macro '{}' takes at most {} arguments, got {}",
        name,
        count,
        given.size()
    ));
  }
}

std::string Interpreter::run_macro(
    const Macro& macro, Activation* outer, Arguments& arguments
) {
  CallLevel level(*this);
  Frame frame(*this, macro.function, outer);
  bind(macro, *frame_, arguments);
  enter(macro.loads);
  for (const Parameter& parameter : macro.parameters) {
    Value& slot = frame_->slots[parameter.slot];
    if (!slot.is(Kind::missing)) {
      continue;
    }
    Value value = parameter.fallback
                      ? evaluate(*parameter.fallback)
                      : Value::undefined(fmt::format(
                            "parameter '{}' was not provided", parameter.name
                        ));
    frame_->slots[parameter.slot] = std::move(value);
  }
  std::string text;
  Capture capture(*this, text);
  execute(macro.body);
  return text;
}

}  // namespace mlxcel::chat
