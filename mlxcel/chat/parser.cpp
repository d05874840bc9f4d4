#include "mlxcel/chat/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "mlxcel/chat/expression_parser.h"
#include "mlxcel/chat/scope.h"
#include "mlxcel/chat/text.h"

namespace mlxcel::chat {

namespace {

class TemplateParser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() {
    return body({});
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  Body body(Names ends);
  Body block_body(Names ends);
  Body closed_body(std::string_view end);
  void statement(Body& into);
  std::unique_ptr<Stmt> tag(const std::string& name, uint32_t position);
  [[noreturn]] void unknown_tag(const Token& token) const;

  std::unique_ptr<Stmt> if_statement(uint32_t position);
  std::unique_ptr<Stmt> for_statement(uint32_t position);
  std::unique_ptr<Stmt> set_statement(uint32_t position);
  std::unique_ptr<Stmt> macro_statement(uint32_t position);
  std::unique_ptr<Stmt> call_statement(uint32_t position);
  std::unique_ptr<Stmt> filter_statement(uint32_t position);
  std::unique_ptr<Stmt> with_statement(uint32_t position);
  std::unique_ptr<Stmt> block_statement(uint32_t position);
  std::unique_ptr<Stmt> autoescape_statement(uint32_t position);
  std::unique_ptr<Stmt> generation_statement(uint32_t position);
  std::unique_ptr<Stmt> unsupported_statement(
      const std::string& name, uint32_t position
  );
  void print_statement(Body& into);

  Target target(const TupleRules& rules);
  Target to_target(Expr& expr);
  std::string target_name();
  void signature(Macro& macro);

  // The end tags that the open blocks wait for, for messages.
  std::vector<std::string> open_;
};

// Statements and text up to one of the end tags, which becomes current.
Body TemplateParser::body(Names ends) {
  Body all;
  while (!is(TokenType::end)) {
    const Token& token = current();
    if (token.type == TokenType::data) {
      all.push_back(std::make_unique<TextStmt>(token.position, token.text));
      advance();
    } else if (token.type == TokenType::variable_begin) {
      advance();
      all.push_back(std::make_unique<Print>(token.position, tuple({})));
      expect(TokenType::variable_end);
    } else {
      expect(TokenType::block_begin);
      bool at_end =
          is(TokenType::name) &&
          std::find(ends.begin(), ends.end(), current().text) != ends.end();
      if (at_end) {
        return all;
      }
      statement(all);
      expect(TokenType::block_end);
    }
  }
  if (ends.size() > 0) {
    reject(
        current().position,
        fmt::format(
            "the template ends where '{}' is expected", *(ends.end() - 1)
        )
    );
  }
  return all;
}

Body TemplateParser::block_body(Names ends) {
  Nest nest(*this);
  skip(TokenType::colon);
  expect(TokenType::block_end);
  open_.emplace_back(*(ends.end() - 1));
  Body all = body(ends);
  open_.pop_back();
  return all;
}

Body TemplateParser::closed_body(std::string_view end) {
  Body all = block_body({end});
  advance();
  return all;
}

void TemplateParser::statement(Body& into) {
  if (!is(TokenType::name)) {
    reject(
        current().position,
        fmt::format("expected a statement, got {}", describe(current()))
    );
  }
  const Token& token = advance();
  if (token.text == "print") {
    print_statement(into);
    return;
  }
  std::unique_ptr<Stmt> statement = tag(token.text, token.position);
  if (!statement) {
    unknown_tag(token);
  }
  into.push_back(std::move(statement));
}

std::unique_ptr<Stmt> TemplateParser::tag(
    const std::string& name, uint32_t position
) {
  using Parse = std::unique_ptr<Stmt> (TemplateParser::*)(uint32_t);
  static constexpr std::pair<std::string_view, Parse> kTags[] = {
      {"if", &TemplateParser::if_statement},
      {"for", &TemplateParser::for_statement},
      {"set", &TemplateParser::set_statement},
      {"macro", &TemplateParser::macro_statement},
      {"call", &TemplateParser::call_statement},
      {"filter", &TemplateParser::filter_statement},
      {"with", &TemplateParser::with_statement},
      {"block", &TemplateParser::block_statement},
      {"autoescape", &TemplateParser::autoescape_statement},
      {"generation", &TemplateParser::generation_statement},
  };
  for (const auto& [known, parse] : kTags) {
    if (known == name) {
      return (this->*parse)(position);
    }
  }
  if (name == "break") {
    return std::make_unique<Jump>(StmtType::break_loop, position);
  }
  if (name == "continue") {
    return std::make_unique<Jump>(StmtType::continue_loop, position);
  }
  if (name == "include" || name == "import" || name == "from" ||
      name == "extends") {
    return unsupported_statement(name, position);
  }
  return nullptr;
}

void TemplateParser::unknown_tag(const Token& token) const {
  std::string message = fmt::format("unknown tag {}", quote_python(token.text));
  if (!open_.empty()) {
    message += fmt::format("; '{}' is expected here", open_.back());
  }
  reject(token.position, message);
}

void TemplateParser::print_statement(Body& into) {
  bool first = true;
  while (!is(TokenType::block_end)) {
    if (!first) {
      expect(TokenType::comma);
    }
    first = false;
    uint32_t position = current().position;
    into.push_back(std::make_unique<Print>(position, expression()));
  }
}

std::unique_ptr<Stmt> TemplateParser::if_statement(uint32_t position) {
  auto node = std::make_unique<If>(position);
  TupleRules rules;
  rules.conditional = false;
  for (;;) {
    ExprPtr test = tuple(rules);
    Body yes = block_body({"elif", "else", "endif"});
    node->branches.emplace_back(std::move(test), std::move(yes));
    const Token& token = advance();
    if (token.text == "elif") {
      continue;
    }
    if (token.text == "else") {
      node->otherwise = closed_body("endif");
    }
    return node;
  }
}

std::unique_ptr<Stmt> TemplateParser::for_statement(uint32_t position) {
  auto node = std::make_unique<For>(position);
  TupleRules targets;
  targets.targets = true;
  targets.end_name = "in";
  node->target = target(targets);
  expect_name("in");
  TupleRules rules;
  rules.conditional = false;
  rules.end_name = "recursive";
  node->iterable = tuple(rules);
  if (skip_name("if")) {
    node->test = expression();
    node->test_target = node->target;
  }
  node->recursive = skip_name("recursive");
  node->body = block_body({"else", "endfor"});
  if (advance().text == "else") {
    node->otherwise = closed_body("endfor");
  }
  return node;
}

std::unique_ptr<Stmt> TemplateParser::set_statement(uint32_t position) {
  TupleRules rules;
  rules.targets = true;
  rules.members = true;
  Target into = target(rules);
  if (skip(TokenType::assign)) {
    auto node = std::make_unique<Assign>(position);
    node->target = std::move(into);
    node->value = tuple({});
    return node;
  }
  auto node = std::make_unique<AssignBlock>(position);
  node->target = std::move(into);
  node->filter = filters(nullptr);
  node->body = closed_body("endset");
  return node;
}

std::unique_ptr<Stmt> TemplateParser::macro_statement(uint32_t position) {
  auto node = std::make_unique<MacroStmt>(position);
  node->macro.name = target_name();
  node->target.name = Value::of(node->macro.name);
  signature(node->macro);
  node->macro.body = closed_body("endmacro");
  return node;
}

std::unique_ptr<Stmt> TemplateParser::call_statement(uint32_t position) {
  auto node = std::make_unique<CallBlock>(position);
  if (is(TokenType::left_paren)) {
    signature(node->caller);
  }
  node->call = expression();
  if (node->call->type != ExprType::call) {
    reject(position, "'call' needs a call, such as 'call f()'");
  }
  node->caller.body = closed_body("endcall");
  return node;
}

std::unique_ptr<Stmt> TemplateParser::filter_statement(uint32_t position) {
  auto node = std::make_unique<FilterBlock>(position);
  node->filter = filters(nullptr, true);
  node->body = closed_body("endfilter");
  return node;
}

std::unique_ptr<Stmt> TemplateParser::with_statement(uint32_t position) {
  auto node = std::make_unique<With>(position);
  TupleRules rules;
  rules.targets = true;
  while (!is(TokenType::block_end)) {
    if (!node->values.empty()) {
      expect(TokenType::comma);
    }
    Target into = target(rules);
    expect(TokenType::assign);
    node->values.emplace_back(std::move(into), expression());
  }
  node->body = closed_body("endwith");
  return node;
}

std::unique_ptr<Stmt> TemplateParser::block_statement(uint32_t position) {
  auto node = std::make_unique<Block>(position);
  node->name = expect(TokenType::name).text;
  node->scoped = skip_name("scoped");
  node->required = skip_name("required");
  node->body = closed_body("endblock");
  skip_name(node->name);
  return node;
}

std::unique_ptr<Stmt> TemplateParser::autoescape_statement(uint32_t position) {
  auto node = std::make_unique<Autoescape>(position);
  node->on = expression();
  node->body = closed_body("endautoescape");
  return node;
}

std::unique_ptr<Stmt> TemplateParser::generation_statement(uint32_t position) {
  auto node = std::make_unique<Generation>(position);
  node->macro.body = closed_body("endgeneration");
  return node;
}

// Read up to the end of the tag: only running it is an error.
std::unique_ptr<Stmt> TemplateParser::unsupported_statement(
    const std::string& name, uint32_t position
) {
  auto node = std::make_unique<Unsupported>(position, name);
  node->expressions.push_back(expression());
  while (!is(TokenType::block_end) && !is(TokenType::end)) {
    advance();
  }
  return node;
}

Target TemplateParser::target(const TupleRules& rules) {
  ExprPtr expr = tuple(rules);
  return to_target(*expr);
}

Target TemplateParser::to_target(Expr& expr) {
  Target result;
  result.position = expr.position;
  switch (expr.type) {
    case ExprType::name:
      result.name = static_cast<Name&>(expr).name;
      break;
    case ExprType::space_member:
      result.type = Target::Type::attribute;
      result.name = static_cast<SpaceMember&>(expr).space;
      result.attribute = static_cast<SpaceMember&>(expr).attribute;
      break;
    case ExprType::tuple:
      result.type = Target::Type::tuple;
      for (const auto& item : static_cast<Group&>(expr).items) {
        result.items.push_back(to_target(*item));
      }
      break;
    default:
      reject(expr.position, "this cannot be assigned to");
  }
  return result;
}

std::string TemplateParser::target_name() {
  const Token& token = expect(TokenType::name);
  static constexpr std::string_view kConstants[] = {
      "true", "True", "false", "False", "none", "None"};
  for (std::string_view constant : kConstants) {
    if (token.text == constant) {
      reject(token.position, fmt::format("'{}' is no name", constant));
    }
  }
  return token.text;
}

void TemplateParser::signature(Macro& macro) {
  expect(TokenType::left_paren);
  bool optional = false;
  while (!is(TokenType::right_paren)) {
    if (!macro.parameters.empty()) {
      expect(TokenType::comma);
    }
    uint32_t position = current().position;
    Parameter parameter;
    parameter.name = target_name();
    for (const Parameter& other : macro.parameters) {
      if (other.name == parameter.name) {
        reject(position, "a second parameter of this name");
      }
    }
    if (skip(TokenType::assign)) {
      parameter.fallback = expression();
      optional = true;
    } else if (optional) {
      reject(position, "a parameter without a default follows one with it");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  expect(TokenType::right_paren);
}

}  // namespace

std::shared_ptr<const Program> parse_template(std::string_view source) {
  if (source.size() > std::numeric_limits<uint32_t>::max() / 2) {
    throw SyntaxFault{0, "larger than 2 GiB"};
  }
  auto program = std::make_shared<Program>();
  program->source = normalize_source(source);
  program->body = TemplateParser(tokenize(program->source)).run();
  resolve_scopes(*program);
  return program;
}

}  // namespace mlxcel::chat
