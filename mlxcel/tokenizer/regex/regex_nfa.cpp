#include "mlxcel/tokenizer/regex/regex_nfa.h"

#include <algorithm>

namespace mlxcel::tokenizer {

namespace {

using Kind = RegexNode::Kind;
using Greed = RegexNode::Greed;
using Op = RegexProgram::Instruction::Op;

constexpr size_t max_instructions = 3000;
constexpr size_t max_sets = 64;

/// What a sequence of nodes can begin with.
struct Beginning {
  CodeSet first;
  bool may_be_empty = true;
  bool has_assertion = false;
};

Beginning beginning(const RegexNode& node);

Beginning beginning(const RegexNode* nodes, size_t count) {
  Beginning all;
  for (size_t i = 0; i < count && all.may_be_empty; ++i) {
    Beginning one = beginning(nodes[i]);
    all.first.add(one.first);
    all.may_be_empty = one.may_be_empty;
    all.has_assertion |= one.has_assertion;
  }
  return all;
}

Beginning beginning(const RegexNode& node) {
  Beginning result;
  switch (node.kind) {
    case Kind::empty:
      break;
    case Kind::set:
      result.first = node.set;
      result.may_be_empty = false;
      break;
    case Kind::concat:
      return beginning(node.children.data(), node.children.size());
    case Kind::alternate:
      result.may_be_empty = false;
      for (const RegexNode& child : node.children) {
        Beginning one = beginning(child);
        result.first.add(one.first);
        result.may_be_empty |= one.may_be_empty;
        result.has_assertion |= one.has_assertion;
      }
      break;
    case Kind::repeat:
      result = beginning(node.children[0]);
      result.may_be_empty |= node.min == 0;
      break;
    default:
      result.has_assertion = true;
      break;
  }
  return result;
}

/// The set of a node that is one character; null for any other.
const CodeSet* one_character(const RegexNode& node) {
  if (node.kind == Kind::set) {
    return &node.set;
  }
  bool wraps = node.kind == Kind::concat && node.children.size() == 1;
  return wraps ? one_character(node.children[0]) : nullptr;
}

class Compiler {
 public:
  std::optional<RegexProgram> compile(const RegexNode& tree) {
    bool ok = tree.kind == Kind::alternate ? alternatives(tree, true)
                                           : emit(tree, true);
    if (!ok) {
      return std::nullopt;
    }
    push({Op::match});
    return std::move(program_);
  }

 private:
  /// `last`: nothing but the end of the whole pattern follows.
  bool emit(const RegexNode& node, bool last) {
    if (program_.code.size() > max_instructions) {
      return false;
    }
    switch (node.kind) {
      case Kind::empty:
        return true;
      case Kind::set:
        return emit_set(node.set);
      case Kind::concat:
        return sequence(node, last);
      case Kind::alternate:
        return alternatives(node, last);
      case Kind::repeat:
        return node.greed != Greed::possessive && repeat(node);
      case Kind::look:
        return look(node);
      default:
        return false;
    }
  }

  bool sequence(const RegexNode& node, bool last) {
    const RegexNode* children = node.children.data();
    size_t count = node.children.size();
    for (size_t i = 0; i < count; ++i) {
      const RegexNode& child = children[i];
      bool possessive =
          child.kind == Kind::repeat && child.greed == Greed::possessive;
      if (possessive) {
        Beginning rest = beginning(children + i + 1, count - i - 1);
        if (!never_gives_back(child, rest, last) || !repeat(child)) {
          return false;
        }
      } else if (!emit(child, last && i + 1 == count)) {
        return false;
      }
    }
    return true;
  }

  /// Whether a greedy repeat would match like the possessive one: what
  /// follows cannot fail, or cannot begin with what was given back.
  static bool never_gives_back(
      const RegexNode& node, const Beginning& rest, bool last
  ) {
    const CodeSet* set = one_character(node.children[0]);
    if (set == nullptr || rest.has_assertion) {
      return false;
    }
    if (rest.may_be_empty) {
      return last;
    }
    return rest.first.intersection(*set).empty();
  }

  bool alternatives(const RegexNode& node, bool last) {
    std::vector<uint32_t> exits;
    for (size_t i = 0; i < node.children.size(); ++i) {
      bool more = i + 1 < node.children.size();
      uint32_t split = here();
      if (more) {
        push({Op::split, split + 1});
      }
      if (!emit(node.children[i], last)) {
        return false;
      }
      if (more) {
        exits.push_back(here());
        push({Op::jump});
        program_.code[split].y = here();
      }
    }
    for (uint32_t at : exits) {
      program_.code[at].x = here();
    }
    return true;
  }

  bool repeat(const RegexNode& node) {
    const RegexNode& body = node.children[0];
    // What an empty turn of a loop does is a matter of taste.
    if (beginning(body).may_be_empty) {
      return false;
    }
    bool lazy = node.greed == Greed::lazy;
    for (unsigned i = 0; i < node.min; ++i) {
      if (!emit(body, false)) {
        return false;
      }
    }
    if (node.max == RegexNode::unbounded) {
      uint32_t split = here();
      push({Op::split});
      if (!emit(body, false)) {
        return false;
      }
      push({Op::jump, split});
      set_split(split, split + 1, here(), lazy);
      return true;
    }
    std::vector<uint32_t> splits;
    for (unsigned i = node.min; i < node.max; ++i) {
      splits.push_back(here());
      push({Op::split});
      if (!emit(body, false)) {
        return false;
      }
    }
    for (uint32_t split : splits) {
      set_split(split, split + 1, here(), lazy);
    }
    return true;
  }

  void set_split(uint32_t at, uint32_t body, uint32_t exit, bool lazy) {
    program_.code[at].x = lazy ? exit : body;
    program_.code[at].y = lazy ? body : exit;
  }

  bool look(const RegexNode& node) {
    const CodeSet* set = one_character(node.children[0]);
    std::optional<uint32_t> index =
        set != nullptr && !node.behind ? set_index(*set) : std::nullopt;
    if (index) {
      push({Op::look, *index, 0, node.negative});
    }
    return index.has_value();
  }

  bool emit_set(const CodeSet& set) {
    std::optional<uint32_t> index = set_index(set);
    if (index) {
      push({Op::set, *index});
    }
    return index.has_value();
  }

  std::optional<uint32_t> set_index(const CodeSet& set) {
    auto known = std::find(program_.sets.begin(), program_.sets.end(), set);
    if (known == program_.sets.end()) {
      if (program_.sets.size() == max_sets) {
        return std::nullopt;
      }
      program_.sets.push_back(set);
      return static_cast<uint32_t>(program_.sets.size() - 1);
    }
    return static_cast<uint32_t>(known - program_.sets.begin());
  }

  uint32_t here() const {
    return static_cast<uint32_t>(program_.code.size());
  }
  void push(RegexProgram::Instruction instruction) {
    program_.code.push_back(instruction);
  }

  RegexProgram program_;
};

}  // namespace

std::optional<RegexProgram> compile_program(const RegexNode& tree) {
  return Compiler().compile(tree);
}

}  // namespace mlxcel::tokenizer
