#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "mlxcel/chat/ast.h"
#include "mlxcel/chat/lexer.h"

namespace mlxcel::chat {

/// Walks the tokens of a template and parses expressions. Bounded in depth, so
/// that no input exhausts the stack. Every function throws SyntaxFault.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens)
      : tokens_(std::move(tokens)) {}

 protected:
  /// What a tuple without parentheses may hold, and where it ends.
  struct TupleRules {
    bool targets = false;  // only names and literals, `ns.x` if members
    bool members = false;
    bool conditional = true;  // `a if b` is allowed
    std::string_view end_name = {};
  };

  const Token& current() const {
    return tokens_[index_];
  }
  const Token& following() const {
    return tokens_[std::min(index_ + 1, tokens_.size() - 1)];
  }
  const Token& advance();
  bool is(TokenType type) const {
    return current().type == type;
  }
  bool skip(TokenType type);
  bool skip_name(std::string_view name);
  const Token& expect(TokenType type);
  void expect_name(std::string_view name);
  [[noreturn]] void reject(uint32_t position, std::string message) const;

  ExprPtr expression(bool conditional = true);
  ExprPtr primary(bool members = false);
  ExprPtr tuple(const TupleRules& rules, bool in_parentheses = false);
  /// Filters behind an expression, or (input null) those of a block, where the
  /// first has no `|`.
  ExprPtr filters(ExprPtr input, bool starts_inline = false);

  /// Counts one level of nesting while it lives.
  class Nest {
   public:
    explicit Nest(ExpressionParser& parser);
    ~Nest() {
      --parser_.depth_;
    }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  friend class Nest;

  ExprPtr conditional();
  ExprPtr either();
  ExprPtr both();
  ExprPtr inverted();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters = true);
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr member(ExprPtr object);
  ExprPtr subscript(ExprPtr object);
  ExprPtr subscript_part(uint32_t position, ExprPtr& object, bool& is_slice);
  ExprPtr call(ExprPtr callee);
  ExprPtr test(ExprPtr input);
  ExprPtr list();
  ExprPtr dict();
  std::string dotted_name();
  CallArguments arguments();
  void argument(CallArguments& all);
  bool at_tuple_end(const TupleRules& rules) const;
  /// Sets the depth of a finished node and checks it.
  ExprPtr finish(ExprPtr node);

  std::vector<Token> tokens_;
  size_t index_ = 0;
  int depth_ = 0;
};

}  // namespace mlxcel::chat
