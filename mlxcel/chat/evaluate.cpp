#include <fmt/format.h>

#include "mlxcel/chat/fault.h"
#include "mlxcel/chat/interpreter.h"
#include "mlxcel/chat/interpreter_guards.h"
#include "mlxcel/chat/methods.h"
#include "mlxcel/chat/operators.h"

namespace mlxcel::chat {

Value Interpreter::evaluate(const Expr& expr) {
  if (expr.type == ExprType::constant) {
    return static_cast<const Constant&>(expr).value;
  }
  if (expr.type == ExprType::name) {
    return evaluate_name(static_cast<const Name&>(expr));
  }
  Nest nest(*this);
  switch (expr.type) {
    case ExprType::tuple:
      return Value::tuple(evaluate_items(static_cast<const Group&>(expr)));
    case ExprType::list:
      return Value::list(evaluate_items(static_cast<const Group&>(expr)));
    case ExprType::dict:
      return evaluate_dict(static_cast<const DictExpr&>(expr));
    case ExprType::conditional:
      return evaluate_conditional(static_cast<const Conditional&>(expr));
    case ExprType::binary:
      return evaluate_binary(static_cast<const Binary&>(expr));
    case ExprType::logical:
      return evaluate_logical(static_cast<const Binary&>(expr));
    case ExprType::unary:
      return evaluate_unary(static_cast<const Unary&>(expr));
    case ExprType::compare:
      return evaluate_compare(static_cast<const Compare&>(expr));
    case ExprType::concat:
      return evaluate_concat(static_cast<const Group&>(expr));
    case ExprType::attribute: {
      const auto& node = static_cast<const Attribute&>(expr);
      Value object = evaluate(*node.object);
      position_ = node.position;
      return get_attribute(object, node.name);
    }
    case ExprType::item: {
      const auto& node = static_cast<const Item&>(expr);
      Value object = evaluate(*node.object);
      Value key = evaluate(*node.index);
      position_ = node.position;
      return get_item(object, key);
    }
    case ExprType::slice:
      return evaluate_slice(static_cast<const Slice&>(expr));
    case ExprType::call:
      return evaluate_call(static_cast<const Call&>(expr));
    case ExprType::filter:
      return evaluate_filter(static_cast<const Filter&>(expr));
    case ExprType::test:
      return evaluate_test(static_cast<const Test&>(expr));
    default:
      return Value::none();
  }
}

Value Interpreter::evaluate_name(const Name& node) {
  const Value& value = variable(node.ref);
  return value.is(Kind::missing) ? Value::undefined_name(node.name) : value;
}

std::vector<Value> Interpreter::evaluate_items(const Group& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const auto& item : node.items) {
    items.push_back(evaluate(*item));
  }
  return items;
}

Value Interpreter::evaluate_dict(const DictExpr& node) {
  std::vector<std::pair<Value, Value>> entries;
  entries.reserve(node.entries.size());
  for (const auto& [key, value] : node.entries) {
    Value own = evaluate(*key);
    entries.emplace_back(std::move(own), evaluate(*value));
  }
  position_ = node.position;
  return Value::dict(std::move(entries));
}

Value Interpreter::evaluate_conditional(const Conditional& node) {
  if (truth(evaluate(*node.test))) {
    return evaluate(*node.yes);
  }
  return node.no
             ? evaluate(*node.no)
             : Value::undefined("the inline 'if' is false and has no 'else'");
}

Value Interpreter::evaluate_logical(const Binary& node) {
  Value left = evaluate(*node.left);
  bool decided = truth(left) == (node.op == Operator::either);
  return decided ? left : evaluate(*node.right);
}

Value Interpreter::evaluate_binary(const Binary& node) {
  Value left = evaluate(*node.left);
  Value right = evaluate(*node.right);
  position_ = node.position;
  return apply_arithmetic(node.op, left, right);
}

Value Interpreter::evaluate_unary(const Unary& node) {
  Value value = evaluate(*node.operand);
  position_ = node.position;
  return node.op == Operator::invert ? Value::of(!truth(value))
                                     : apply_sign(node.op, value);
}

Value Interpreter::evaluate_compare(const Compare& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, expr] : node.rest) {
    Value right = evaluate(*expr);
    position_ = node.position;
    if (!apply_comparison(op, left, right)) {
      return Value::of(false);
    }
    left = std::move(right);
  }
  return Value::of(true);
}

Value Interpreter::evaluate_concat(const Group& node) {
  std::string text;
  for (const auto& item : node.items) {
    append_string(text, evaluate(*item));
  }
  position_ = node.position;
  return Value::of(std::move(text));
}

Value Interpreter::evaluate_slice(const Slice& node) {
  Value object = evaluate(*node.object);
  auto bound = [this](const ExprPtr& expr) {
    return expr ? evaluate(*expr) : Value::none();
  };
  Value start = bound(node.start);
  Value stop = bound(node.stop);
  Value step = bound(node.step);
  position_ = node.position;
  return slice(object, start, stop, step);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& node) {
  Arguments result;
  result.positional.reserve(node.positional.size());
  for (const auto& value : node.positional) {
    result.positional.push_back(evaluate(*value));
  }
  for (const auto& [name, value] : node.named) {
    result.named.emplace_back(name, evaluate(*value));
  }
  if (node.more_positional) {
    for (Value& item : to_items(evaluate(*node.more_positional))) {
      result.positional.push_back(std::move(item));
    }
  }
  if (!node.more_named) {
    return result;
  }
  Value more = evaluate(*node.more_named);
  if (!more.is(Kind::dict)) {
    fault(fmt::format(
        "'**' needs a dict, got a value of type '{}'", type_name(more)
    ));
  }
  for (const auto& [key, value] : more.dict().entries()) {
    if (!key.is_string() || result.find(key.view())) {
      fault("'**' with a name that is no string or given twice");
    }
    result.named.emplace_back(std::string(key.view()), value);
  }
  return result;
}

Value Interpreter::evaluate_call(const Call& node, const Value* caller) {
  Value callee;
  if (node.callee->type == ExprType::attribute) {
    const auto& member = static_cast<const Attribute&>(*node.callee);
    Value object = evaluate(*member.object);
    const MethodInfo* method = find_method(object, member.name.view());
    if (method && !caller) {
      Arguments arguments = evaluate_arguments(node.arguments);
      position_ = node.position;
      return method->call(*this, object, arguments);
    }
    position_ = member.position;
    callee = get_attribute(object, member.name);
  } else {
    callee = evaluate(*node.callee);
  }
  Arguments arguments = evaluate_arguments(node.arguments);
  if (caller) {
    arguments.named.emplace_back("caller", *caller);
  }
  position_ = node.position;
  return call(callee, std::move(arguments));
}

Value Interpreter::evaluate_filter(
    const Filter& node, const Value* block_text
) {
  Value input;
  if (node.input) {
    // Filters of a block stand inside each other, the first one innermost.
    input = block_text && node.input->type == ExprType::filter
                ? evaluate_filter(
                      static_cast<const Filter&>(*node.input), block_text
                  )
                : evaluate(*node.input);
  } else if (block_text) {
    input = *block_text;
  }
  Arguments arguments = evaluate_arguments(node.arguments);
  position_ = node.position;
  if (!node.info) {
    fault(fmt::format("unknown filter '{}'", node.name));
  }
  return node.info->apply(*this, input, arguments);
}

Value Interpreter::evaluate_test(const Test& node) {
  Value input = evaluate(*node.input);
  Arguments arguments = evaluate_arguments(node.arguments);
  position_ = node.position;
  if (!node.info) {
    fault(fmt::format("unknown test '{}'", node.name));
  }
  return Value::of(node.info->apply(*this, input, arguments));
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  switch (callee.kind()) {
    case Kind::callable:
    case Kind::loop:
      return callee.callable().call(*this, arguments);
    case Kind::undefined:
      fault(callee.absence());
    default:
      fault(fmt::format(
          "a value of type '{}' cannot be called", type_name(callee)
      ));
  }
}

Value Interpreter::apply_filter(
    std::string_view name, const Value& input, const Arguments& arguments
) {
  const FilterInfo* info = find_filter(name);
  if (!info) {
    fault(fmt::format("unknown filter '{}'", name));
  }
  budget_.step();
  return info->apply(*this, input, arguments);
}

bool Interpreter::apply_test(
    std::string_view name, const Value& input, const Arguments& arguments
) {
  const TestInfo* info = find_test(name);
  if (!info) {
    fault(fmt::format("unknown test '{}'", name));
  }
  budget_.step();
  return info->apply(*this, input, arguments);
}

namespace {

bool is_sequence(const Value& value) {
  return value.is_string() || value.is(Kind::list) || value.is(Kind::tuple) ||
         value.is(Kind::range);
}

bool is_hashable(const Value& value) {
  try {
    check_hashable(value);
    return true;
  } catch (const Fault&) {
    return false;
  }
}

}  // namespace

Value Interpreter::find_attribute(const Value& object, const Value& name) {
  std::string_view text = name.view();
  if (object.is(Kind::space)) {
    const Value* own = object.space().find(text);
    return own ? *own : Value();
  }
  if (object.is(Kind::callable) || object.is(Kind::loop)) {
    Value own = object.callable().attribute(text);
    if (!own.is(Kind::missing)) {
      return own;
    }
  }
  if (is_hidden_attribute(object, text)) {
    return Value::undefined(fmt::format(
        "attribute '{}' of a value of type '{}' is out of reach",
        text,
        type_name(object)
    ));
  }
  if (const MethodInfo* method = find_method(object, text)) {
    return bind_method(object, text, *method);
  }
  return find_property(object, text);
}

Value Interpreter::get_attribute(const Value& object, const Value& name) {
  if (object.is(Kind::undefined)) {
    fault(object.absence());
  }
  Value found = find_attribute(object, name);
  if (!found.is(Kind::missing)) {
    return found;
  }
  if (object.is(Kind::dict)) {
    if (const Value* value = object.dict().find(name.view())) {
      return *value;
    }
  }
  return Value::undefined_member(object, name);
}

Value Interpreter::get_item(const Value& object, const Value& key) {
  if (object.is(Kind::undefined)) {
    fault(object.absence());
  }
  if (object.is(Kind::dict) && is_hashable(key)) {
    if (const Value* value = object.dict().find(key)) {
      return *value;
    }
  } else if (is_sequence(object) && key.is_integral()) {
    Value item = item_at(object, key.integer());
    if (!item.is(Kind::missing)) {
      return item;
    }
  }
  if (key.is_string()) {
    Value found = find_attribute(object, key);
    if (!found.is(Kind::missing)) {
      return found;
    }
  }
  return Value::undefined_member(object, key);
}

}  // namespace mlxcel::chat
