#include "mlxcel/chat/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "mlxcel/chat/filters.h"

namespace mlxcel::chat {

namespace {

// Levels of brackets and blocks inside each other, and levels of the tree of
// one expression. Jinja itself gives up before.
constexpr int kMaxNesting = 200;
constexpr int kMaxExprDepth = 250;

class DepthVisitor final : public ExprVisitor {
 public:
  void visit(Expr& expr) override {
    deepest_ = std::max(deepest_, expr.depth);
  }
  uint16_t deepest() const {
    return deepest_;
  }

 private:
  uint16_t deepest_ = 0;
};

std::optional<Operator> comparison_operator(TokenType type) {
  switch (type) {
    case TokenType::equal:
      return Operator::equal;
    case TokenType::not_equal:
      return Operator::not_equal;
    case TokenType::less:
      return Operator::less;
    case TokenType::less_equal:
      return Operator::less_equal;
    case TokenType::greater:
      return Operator::greater;
    case TokenType::greater_equal:
      return Operator::greater_equal;
    default:
      return std::nullopt;
  }
}

std::optional<Operator> product_operator(TokenType type) {
  switch (type) {
    case TokenType::multiply:
      return Operator::multiply;
    case TokenType::divide:
      return Operator::divide;
    case TokenType::floor_divide:
      return Operator::floor_divide;
    case TokenType::modulo:
      return Operator::modulo;
    default:
      return std::nullopt;
  }
}

}  // namespace

ExpressionParser::Nest::Nest(ExpressionParser& parser) : parser_(parser) {
  if (++parser.depth_ > kMaxNesting) {
    --parser.depth_;
    parser.reject(
        parser.current().position,
        fmt::format("nested deeper than {} levels", kMaxNesting)
    );
  }
}

const Token& ExpressionParser::advance() {
  const Token& token = tokens_[index_];
  index_ += index_ + 1 < tokens_.size();
  return token;
}

bool ExpressionParser::skip(TokenType type) {
  if (!is(type)) {
    return false;
  }
  advance();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) {
    return false;
  }
  advance();
  return true;
}

const Token& ExpressionParser::expect(TokenType type) {
  if (!is(type)) {
    reject(
        current().position,
        fmt::format("expected {}, got {}", describe(type), describe(current()))
    );
  }
  return advance();
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) {
    reject(
        current().position,
        fmt::format("expected '{}', got {}", name, describe(current()))
    );
  }
}

void ExpressionParser::reject(uint32_t position, std::string message) const {
  throw SyntaxFault{position, std::move(message)};
}

ExprPtr ExpressionParser::finish(ExprPtr node) {
  DepthVisitor visitor;
  node->children(visitor);
  node->depth = static_cast<uint16_t>(visitor.deepest() + 1);
  if (node->depth > kMaxExprDepth) {
    reject(
        node->position,
        fmt::format("an expression of more than {} levels", kMaxExprDepth)
    );
  }
  return node;
}

ExprPtr ExpressionParser::expression(bool with_conditional) {
  Nest nest(*this);
  return with_conditional ? conditional() : either();
}

ExprPtr ExpressionParser::conditional() {
  uint32_t position = current().position;
  ExprPtr left = either();
  while (skip_name("if")) {
    Nest nest(*this);
    auto node = std::make_unique<Conditional>(position);
    node->test = either();
    node->yes = std::move(left);
    if (skip_name("else")) {
      node->no = conditional();
    }
    left = finish(std::move(node));
    position = current().position;
  }
  return left;
}

ExprPtr ExpressionParser::either() {
  ExprPtr left = both();
  while (current().is_name("or")) {
    uint32_t position = advance().position;
    left = finish(std::make_unique<Binary>(
        ExprType::logical, position, Operator::either, std::move(left), both()
    ));
  }
  return left;
}

ExprPtr ExpressionParser::both() {
  ExprPtr left = inverted();
  while (current().is_name("and")) {
    uint32_t position = advance().position;
    left = finish(std::make_unique<Binary>(
        ExprType::logical, position, Operator::both, std::move(left), inverted()
    ));
  }
  return left;
}

ExprPtr ExpressionParser::inverted() {
  if (!current().is_name("not")) {
    return comparison();
  }
  Nest nest(*this);
  uint32_t position = advance().position;
  return finish(std::make_unique<Unary>(position, Operator::invert, inverted())
  );
}

ExprPtr ExpressionParser::comparison() {
  ExprPtr first = sum();
  auto node = std::make_unique<Compare>(current().position);
  for (;;) {
    if (auto op = comparison_operator(current().type)) {
      advance();
      node->rest.emplace_back(*op, sum());
    } else if (skip_name("in")) {
      node->rest.emplace_back(Operator::in, sum());
    } else if (current().is_name("not") && following().is_name("in")) {
      advance();
      advance();
      node->rest.emplace_back(Operator::not_in, sum());
    } else {
      break;
    }
  }
  if (node->rest.empty()) {
    return first;
  }
  node->first = std::move(first);
  return finish(std::move(node));
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concatenation();
  while (is(TokenType::add) || is(TokenType::subtract)) {
    const Token& token = advance();
    Operator op =
        token.type == TokenType::add ? Operator::add : Operator::subtract;
    uint32_t position = token.position;
    left = finish(std::make_unique<Binary>(
        ExprType::binary, position, op, std::move(left), concatenation()
    ));
  }
  return left;
}

ExprPtr ExpressionParser::concatenation() {
  uint32_t position = current().position;
  std::vector<ExprPtr> parts;
  parts.push_back(product());
  while (skip(TokenType::tilde)) {
    parts.push_back(product());
  }
  if (parts.size() == 1) {
    return std::move(parts[0]);
  }
  return finish(
      std::make_unique<Group>(ExprType::concat, position, std::move(parts))
  );
}

ExprPtr ExpressionParser::product() {
  ExprPtr left = power();
  while (auto op = product_operator(current().type)) {
    uint32_t position = advance().position;
    left = finish(std::make_unique<Binary>(
        ExprType::binary, position, *op, std::move(left), power()
    ));
  }
  return left;
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = unary();
  while (is(TokenType::power)) {
    uint32_t position = advance().position;
    left = finish(std::make_unique<Binary>(
        ExprType::binary, position, Operator::power, std::move(left), unary()
    ));
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  ExprPtr node;
  if (is(TokenType::subtract) || is(TokenType::add)) {
    Nest nest(*this);
    const Token& token = advance();
    Operator op =
        token.type == TokenType::add ? Operator::plus : Operator::negate;
    uint32_t position = token.position;
    node = finish(std::make_unique<Unary>(position, op, unary(false)));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr ExpressionParser::primary(bool members) {
  const Token& token = current();
  uint32_t position = token.position;
  switch (token.type) {
    case TokenType::name: {
      advance();
      const std::string& text = token.text;
      if (text == "true" || text == "True" || text == "false" ||
          text == "False") {
        bool value = text[0] == 't' || text[0] == 'T';
        return std::make_unique<Constant>(position, Value::of(value));
      }
      if (text == "none" || text == "None") {
        return std::make_unique<Constant>(position, Value::none());
      }
      if (members && skip(TokenType::dot)) {
        return std::make_unique<SpaceMember>(
            position, Value::of(text), expect(TokenType::name).text
        );
      }
      return std::make_unique<Name>(position, Value::of(text));
    }
    case TokenType::string: {
      std::string text;
      while (is(TokenType::string)) {
        text += advance().text;
      }
      return std::make_unique<Constant>(position, Value::of(std::move(text)));
    }
    case TokenType::integer:
      advance();
      return std::make_unique<Constant>(position, Value::of(token.integer));
    case TokenType::real:
      advance();
      return std::make_unique<Constant>(position, Value::of(token.real));
    case TokenType::left_paren: {
      Nest nest(*this);
      advance();
      ExprPtr node = tuple({}, true);
      expect(TokenType::right_paren);
      return node;
    }
    case TokenType::left_bracket:
      return list();
    case TokenType::left_brace:
      return dict();
    default:
      reject(position, fmt::format("unexpected {}", describe(token)));
  }
}

bool ExpressionParser::at_tuple_end(const TupleRules& rules) const {
  return is(TokenType::variable_end) || is(TokenType::block_end) ||
         is(TokenType::right_paren) ||
         (!rules.end_name.empty() && current().is_name(rules.end_name));
}

ExprPtr ExpressionParser::tuple(const TupleRules& rules, bool in_parentheses) {
  uint32_t position = current().position;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) {
      expect(TokenType::comma);
    }
    if (at_tuple_end(rules)) {
      break;
    }
    items.push_back(
        rules.targets ? primary(rules.members) : expression(rules.conditional)
    );
    if (!is(TokenType::comma)) {
      break;
    }
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) {
      return std::move(items[0]);
    }
    if (!in_parentheses) {
      reject(
          position,
          fmt::format("expected an expression, got {}", describe(current()))
      );
    }
  }
  return finish(
      std::make_unique<Group>(ExprType::tuple, position, std::move(items))
  );
}

ExprPtr ExpressionParser::list() {
  Nest nest(*this);
  uint32_t position = expect(TokenType::left_bracket).position;
  std::vector<ExprPtr> items;
  while (!is(TokenType::right_bracket)) {
    if (!items.empty()) {
      expect(TokenType::comma);
    }
    if (is(TokenType::right_bracket)) {
      break;
    }
    items.push_back(expression());
  }
  expect(TokenType::right_bracket);
  return finish(
      std::make_unique<Group>(ExprType::list, position, std::move(items))
  );
}

ExprPtr ExpressionParser::dict() {
  Nest nest(*this);
  auto node =
      std::make_unique<DictExpr>(expect(TokenType::left_brace).position);
  while (!is(TokenType::right_brace)) {
    if (!node->entries.empty()) {
      expect(TokenType::comma);
    }
    if (is(TokenType::right_brace)) {
      break;
    }
    ExprPtr key = expression();
    expect(TokenType::colon);
    node->entries.emplace_back(std::move(key), expression());
  }
  expect(TokenType::right_brace);
  return finish(std::move(node));
}

ExprPtr ExpressionParser::postfix(ExprPtr node) {
  for (;;) {
    if (is(TokenType::dot)) {
      node = member(std::move(node));
    } else if (is(TokenType::left_bracket)) {
      node = subscript(std::move(node));
    } else if (is(TokenType::left_paren)) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr node) {
  for (;;) {
    if (is(TokenType::pipe)) {
      node = filters(std::move(node));
    } else if (current().is_name("is")) {
      node = test(std::move(node));
    } else if (is(TokenType::left_paren)) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::member(ExprPtr object) {
  uint32_t position = expect(TokenType::dot).position;
  const Token& token = advance();
  if (token.type == TokenType::name) {
    return finish(std::make_unique<Attribute>(
        position, std::move(object), Value::of(token.text)
    ));
  }
  if (token.type != TokenType::integer) {
    reject(
        token.position,
        fmt::format("expected a name or a number, got {}", describe(token))
    );
  }
  return finish(std::make_unique<Item>(
      position,
      std::move(object),
      std::make_unique<Constant>(token.position, Value::of(token.integer))
  ));
}

// One index, or a slice of `object`, which moves into the result.
ExprPtr ExpressionParser::subscript_part(
    uint32_t position, ExprPtr& object, bool& is_slice
) {
  ExprPtr start;
  if (!is(TokenType::colon)) {
    start = expression();
    if (!is(TokenType::colon)) {
      return start;
    }
  }
  auto at_end = [this] {
    return is(TokenType::right_bracket) || is(TokenType::comma);
  };
  is_slice = true;
  auto node = std::make_unique<Slice>(position);
  advance();
  node->start = std::move(start);
  if (!is(TokenType::colon) && !at_end()) {
    node->stop = expression();
  }
  if (skip(TokenType::colon) && !at_end()) {
    node->step = expression();
  }
  node->object = std::move(object);
  return node;
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  Nest nest(*this);
  uint32_t position = expect(TokenType::left_bracket).position;
  std::vector<ExprPtr> parts;
  bool is_slice = false;
  while (!is(TokenType::right_bracket)) {
    if (!parts.empty()) {
      expect(TokenType::comma);
    }
    if (is_slice) {
      reject(current().position, "a slice stands alone in its brackets");
    }
    parts.push_back(subscript_part(position, object, is_slice));
  }
  expect(TokenType::right_bracket);
  if (is_slice) {
    if (parts.size() > 1) {
      reject(position, "a slice stands alone in its brackets");
    }
    return finish(std::move(parts[0]));
  }
  ExprPtr index = parts.size() == 1
                      ? std::move(parts[0])
                      : finish(std::make_unique<Group>(
                            ExprType::tuple, position, std::move(parts)
                        ));
  return finish(
      std::make_unique<Item>(position, std::move(object), std::move(index))
  );
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  uint32_t position = current().position;
  return finish(std::make_unique<Call>(position, std::move(callee), arguments())
  );
}

CallArguments ExpressionParser::arguments() {
  Nest nest(*this);
  expect(TokenType::left_paren);
  CallArguments all;
  bool first = true;
  while (!is(TokenType::right_paren)) {
    if (!first) {
      expect(TokenType::comma);
      if (is(TokenType::right_paren)) {
        break;
      }
    }
    first = false;
    argument(all);
  }
  expect(TokenType::right_paren);
  return all;
}

void ExpressionParser::argument(CallArguments& all) {
  auto require = [this](bool allowed) {
    if (!allowed) {
      reject(current().position, "this argument may not stand here");
    }
  };
  if (is(TokenType::multiply)) {
    require(!all.more_positional && !all.more_named);
    advance();
    all.more_positional = expression();
  } else if (is(TokenType::power)) {
    require(!all.more_named);
    advance();
    all.more_named = expression();
  } else if (is(TokenType::name) && following().type == TokenType::assign) {
    require(!all.more_named);
    std::string name = advance().text;
    for (const auto& [other, value] : all.named) {
      require(other != name);
    }
    advance();
    all.named.emplace_back(std::move(name), expression());
  } else {
    require(!all.more_positional && !all.more_named && all.named.empty());
    all.positional.push_back(expression());
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect(TokenType::name).text;
  while (skip(TokenType::dot)) {
    name += '.' + expect(TokenType::name).text;
  }
  return name;
}

ExprPtr ExpressionParser::filters(ExprPtr input, bool starts_inline) {
  ExprPtr node = std::move(input);
  while (starts_inline || is(TokenType::pipe)) {
    if (!starts_inline) {
      advance();
    }
    starts_inline = false;
    auto filter = std::make_unique<Filter>(current().position);
    filter->name = dotted_name();
    filter->info = find_filter(filter->name);
    if (is(TokenType::left_paren)) {
      filter->arguments = arguments();
    }
    filter->input = std::move(node);
    node = finish(std::move(filter));
  }
  return node;
}

ExprPtr ExpressionParser::test(ExprPtr input) {
  uint32_t position = advance().position;
  bool negated = skip_name("not");
  auto node = std::make_unique<Test>(current().position);
  node->name = dotted_name();
  node->info = find_test(node->name);
  node->input = std::move(input);
  const Token& next = current();
  if (next.type == TokenType::left_paren) {
    node->arguments = arguments();
  } else if (next.is_name("is")) {
    reject(next.position, "a test cannot follow a test");
  } else {
    bool is_argument =
        next.type == TokenType::name || next.type == TokenType::string ||
        next.type == TokenType::integer || next.type == TokenType::real ||
        next.type == TokenType::left_bracket ||
        next.type == TokenType::left_brace;
    if (is_argument && !next.is_name("else") && !next.is_name("or") &&
        !next.is_name("and")) {
      node->arguments.positional.push_back(postfix(primary()));
    }
  }
  ExprPtr result = finish(std::move(node));
  return negated ? finish(std::make_unique<Unary>(
                       position, Operator::invert, std::move(result)
                   ))
                 : std::move(result);
}

}  // namespace mlxcel::chat
