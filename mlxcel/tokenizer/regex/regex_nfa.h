#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mlxcel/tokenizer/regex/regex_syntax.h"

namespace mlxcel::tokenizer {

/// A pattern as a program of threads in order of preference (Pike's machine).
struct RegexProgram {
  struct Instruction {
    enum class Op {
      set,    // consume one character of sets[x], go on
      split,  // try x, then y
      jump,   // to x
      look,   // go on if the next character is (negative: is not) in sets[x];
              // the end of the text is in no set
      match
    };
    Op op;
    uint32_t x = 0;
    uint32_t y = 0;
    bool negative = false;
  };
  std::vector<Instruction> code;
  std::vector<CodeSet> sets;
};

/// Empty if the pattern has something that such a program cannot say.
std::optional<RegexProgram> compile_program(const RegexNode& tree);

}  // namespace mlxcel::tokenizer
