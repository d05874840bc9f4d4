#include "mlxcel/tokenizer/regex/regex_dfa.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "mlxcel/tokenizer/regex/regex_nfa.h"
#include "mlxcel/tokenizer/unicode/run_table.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

constexpr size_t max_states = 2000;

/// Code points that no set of the program tells apart share a class.
struct Classes {
  std::vector<unicode::RunTable::Run> runs;
  std::vector<uint64_t> members;  // class -> the sets that hold it, as bits
};

Classes classify(const std::vector<CodeSet>& sets) {
  std::map<uint32_t, uint64_t> changes;  // where membership of sets flips
  changes[0] = 0;
  for (size_t i = 0; i < sets.size(); ++i) {
    for (const CodeSet::Range& range : sets[i].ranges()) {
      changes[range.first] ^= uint64_t{1} << i;
      changes[range.last + 1] ^= uint64_t{1} << i;
    }
  }
  changes.erase(CodeSet::max_code_point + 1);
  Classes classes;
  std::map<uint64_t, uint16_t> numbers;
  uint64_t member = 0;
  for (const auto& [first, flips] : changes) {
    member ^= flips;
    auto [number, added] = numbers.try_emplace(
        member, static_cast<uint16_t>(classes.members.size())
    );
    if (added) {
      classes.members.push_back(member);
    }
    classes.runs.push_back({first, number->second});
  }
  return classes;
}

/// Subset construction over ordered lists of threads. Whether a list has
/// matched is known only with the next character, because of look-ahead.
class Builder {
 public:
  Builder(const RegexProgram& program, std::vector<uint64_t> members)
      : program_(program), members_(std::move(members)) {
    members_.push_back(0);  // the end of the text
  }

  /// Per state and class (the end is the last): next state * 2, plus 1 if a
  /// match ends before this character. State 0 is dead, 1 the start.
  std::optional<std::vector<uint32_t>> build() {
    state_of({});
    state_of({0});
    std::vector<uint32_t> transitions(members_.size(), 0);
    for (size_t state = 1; state < states_.size(); ++state) {
      if (states_.size() > max_states) {
        return std::nullopt;
      }
      std::vector<uint32_t> threads = states_[state];
      for (size_t c = 0; c < members_.size(); ++c) {
        transitions.push_back(step(threads, c));
      }
    }
    return transitions;
  }

  size_t classes() const {
    return members_.size();
  }

 private:
  uint32_t step(const std::vector<uint32_t>& threads, size_t c) {
    next_.clear();
    matched_ = false;
    seen_.assign(program_.code.size(), false);
    for (uint32_t thread : threads) {
      follow(thread, c);
      if (matched_) {
        break;  // the threads behind are less preferred than the match
      }
    }
    bool at_end = c + 1 == members_.size();
    uint32_t target = at_end ? 0 : state_of(next_);
    return target * 2 + (matched_ ? 1 : 0);
  }

  void follow(uint32_t from, size_t c) {
    stack_.assign(1, from);
    while (!stack_.empty()) {
      uint32_t at = stack_.back();
      stack_.pop_back();
      if (seen_[at]) {
        continue;
      }
      seen_[at] = true;
      const RegexProgram::Instruction& i = program_.code[at];
      using Op = RegexProgram::Instruction::Op;
      switch (i.op) {
        case Op::jump:
          stack_.push_back(i.x);
          break;
        case Op::split:
          stack_.push_back(i.y);
          stack_.push_back(i.x);
          break;
        case Op::look:
          if ((members_[c] >> i.x & 1) != (i.negative ? 1u : 0u)) {
            stack_.push_back(at + 1);
          }
          break;
        case Op::set:
          if ((members_[c] >> i.x & 1) != 0) {
            next_.push_back(at + 1);
          }
          break;
        case Op::match:
          matched_ = true;
          return;
      }
    }
  }

  uint32_t state_of(const std::vector<uint32_t>& threads) {
    auto [known, added] =
        numbers_.try_emplace(threads, static_cast<uint32_t>(states_.size()));
    if (added) {
      states_.push_back(threads);
    }
    return known->second;
  }

  const RegexProgram& program_;
  std::vector<uint64_t> members_;
  std::vector<std::vector<uint32_t>> states_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> stack_;
  std::vector<bool> seen_;
  bool matched_ = false;
};

class DfaRegex : public Regex {
 public:
  DfaRegex(
      const Classes& classes,
      size_t stride,
      const std::vector<uint32_t>& transitions
  )
      : table_(classes.runs), stride_(stride), cells_(transitions.size()) {
    // Targets become offsets into the table.
    for (size_t i = 0; i < transitions.size(); ++i) {
      uint32_t target = transitions[i] / 2 * static_cast<uint32_t>(stride);
      cells_[i] = target * 2 + transitions[i] % 2;
    }
    for (char32_t c = 0; c < ascii_.size(); ++c) {
      ascii_[c] = table_[c];
    }
  }

  bool find(std::string_view text, size_t from, Match& match, uint64_t& effort)
      const override {
    const char* end = text.data() + text.size();
    for (const char* start = text.data() + from;;) {
      const char* found = match_at(start, end, effort);
      if (found != nullptr) {
        match.begin = static_cast<size_t>(start - text.data());
        match.end = static_cast<size_t>(found - text.data());
        return true;
      }
      if (start == end) {
        return false;
      }
      check_effort(effort, text.size());
      start += utf8::length(static_cast<unsigned char>(*start));
    }
  }

 private:
  /// Where the match that begins at `start` ends; null if there is none.
  const char* match_at(const char* start, const char* end, uint64_t& effort)
      const {
    const uint32_t* cells = cells_.data();
    const char* found = nullptr;
    const char* p = start;
    size_t state = stride_;
    while (p != end) {
      const char* next = p;
      unsigned char byte = static_cast<unsigned char>(*p);
      size_t c;
      if (byte < 0x80) {
        c = ascii_[byte];
        ++next;
      } else {
        c = table_[utf8::next(next)];
      }
      uint32_t cell = cells[state + c];
      if ((cell & 1) != 0) {
        found = p;
      }
      state = cell >> 1;
      if (state == 0) {
        effort += static_cast<size_t>(next - start);
        return found;
      }
      p = next;
    }
    effort += static_cast<size_t>(p - start);
    return (cells[state + stride_ - 1] & 1) != 0 ? end : found;
  }

  unicode::RunTable table_;
  std::array<uint16_t, 128> ascii_{};
  size_t stride_;
  std::vector<uint32_t> cells_;
};

}  // namespace

std::shared_ptr<const Regex> compile_dfa(const RegexNode& tree) {
  std::optional<RegexProgram> program = compile_program(tree);
  if (!program) {
    return nullptr;
  }
  Classes classes = classify(program->sets);
  Builder builder(*program, classes.members);
  std::optional<std::vector<uint32_t>> transitions = builder.build();
  if (!transitions) {
    return nullptr;
  }
  return std::make_shared<DfaRegex>(classes, builder.classes(), *transitions);
}

}  // namespace mlxcel::tokenizer
