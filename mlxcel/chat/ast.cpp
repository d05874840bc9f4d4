#include "mlxcel/chat/ast.h"

#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

void visit_if(ExprVisitor& visitor, const ExprPtr& expr) {
  if (expr) {
    visitor.visit(*expr);
  }
}

}  // namespace

void CallArguments::children(ExprVisitor& visitor) {
  for (const auto& value : positional) {
    visitor.visit(*value);
  }
  for (const auto& [name, value] : named) {
    visitor.visit(*value);
  }
  visit_if(visitor, more_positional);
  visit_if(visitor, more_named);
}

void Group::children(ExprVisitor& visitor) {
  for (const auto& item : items) {
    visitor.visit(*item);
  }
}

void DictExpr::children(ExprVisitor& visitor) {
  for (const auto& [key, value] : entries) {
    visitor.visit(*key);
    visitor.visit(*value);
  }
}

void Conditional::children(ExprVisitor& visitor) {
  visitor.visit(*test);
  visitor.visit(*yes);
  visit_if(visitor, no);
}

void Binary::children(ExprVisitor& visitor) {
  visitor.visit(*left);
  visitor.visit(*right);
}

void Unary::children(ExprVisitor& visitor) {
  visitor.visit(*operand);
}

void Compare::children(ExprVisitor& visitor) {
  visitor.visit(*first);
  for (const auto& [op, value] : rest) {
    visitor.visit(*value);
  }
}

void Attribute::children(ExprVisitor& visitor) {
  visitor.visit(*object);
}

void Item::children(ExprVisitor& visitor) {
  visitor.visit(*object);
  visitor.visit(*index);
}

void Slice::children(ExprVisitor& visitor) {
  visitor.visit(*object);
  visit_if(visitor, start);
  visit_if(visitor, stop);
  visit_if(visitor, step);
}

void Call::children(ExprVisitor& visitor) {
  visitor.visit(*callee);
  arguments.children(visitor);
}

void Filter::children(ExprVisitor& visitor) {
  visit_if(visitor, input);
  arguments.children(visitor);
}

void Test::children(ExprVisitor& visitor) {
  visitor.visit(*input);
  arguments.children(visitor);
}

std::pair<int, int> Program::locate(uint32_t position) const {
  std::string_view before = std::string_view(source).substr(0, position);
  int line = 1;
  for (char c : before) {
    line += c == '\n';
  }
  size_t start = before.rfind('\n');
  before.remove_prefix(start == std::string_view::npos ? 0 : start + 1);
  return {line, static_cast<int>(count_code_points(before)) + 1};
}

}  // namespace mlxcel::chat
