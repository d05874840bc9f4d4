#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlxcel::chat {

enum class TokenType : uint8_t {
  data,  // text outside of tags
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  add,
  subtract,
  divide,
  floor_divide,
  multiply,
  modulo,
  power,
  tilde,
  left_bracket,
  right_bracket,
  left_paren,
  right_paren,
  left_brace,
  right_brace,
  equal,
  not_equal,
  greater,
  greater_equal,
  less,
  less_equal,
  assign,
  dot,
  colon,
  pipe,
  comma,
  semicolon,
  end,
};

struct Token {
  TokenType type = TokenType::end;
  uint32_t position = 0;
  std::string text;  // of data, names and strings, the latter decoded
  int64_t integer = 0;
  double real = 0;

  bool is_name(std::string_view name) const {
    return type == TokenType::name && text == name;
  }
};

/// As a message names it: "'%}'", "'endfor'", "the end of the template".
std::string describe(const Token& token);
std::string describe(TokenType type);

/// Where and why a template is not valid.
struct SyntaxFault {
  uint32_t position;
  std::string message;
};

/// The source with every line end as \n and without the one at its end, which
/// Jinja drops.
std::string normalize_source(std::string_view source);

/// Splits a normalised source into tokens, in the settings of transformers:
/// trim_blocks (a line end behind a block tag goes) and lstrip_blocks (blanks
/// before a block tag at the start of a line go). The last token is `end`.
/// Throws SyntaxFault.
std::vector<Token> tokenize(std::string_view source);

}  // namespace mlxcel::chat
