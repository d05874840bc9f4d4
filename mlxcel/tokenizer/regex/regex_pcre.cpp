#include "mlxcel/tokenizer/regex/regex_pcre.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <string>

#include "mlxcel/core/error.h"

namespace mlxcel::tokenizer {

namespace {

constexpr uint32_t heap_limit_kib = 64 * 1024;
constexpr size_t max_program = 1 << 20;

struct CodeFree {
  void operator()(pcre2_code* code) const {
    pcre2_code_free(code);
  }
};
struct ContextFree {
  void operator()(pcre2_match_context* context) const {
    pcre2_match_context_free(context);
  }
};
struct MatchFree {
  void operator()(pcre2_match_data* data) const {
    pcre2_match_data_free(data);
  }
};

/// Writes the tree in PCRE2's syntax, with explicit sets: PCRE2's own
/// properties follow another version of Unicode.
class Writer {
 public:
  std::string text;

  void write(const RegexNode& node) {
    using Kind = RegexNode::Kind;
    switch (node.kind) {
      case Kind::empty:
        break;
      case Kind::set:
        write_set(node.set);
        break;
      case Kind::concat:
        for (const RegexNode& child : node.children) {
          write(child);
        }
        break;
      case Kind::alternate:
        write_alternatives(node);
        break;
      case Kind::repeat:
        write_repeat(node);
        break;
      case Kind::look:
        text += node.behind ? "(?<" : "(?";
        text += node.negative ? '!' : '=';
        write(node.children[0]);
        text += ')';
        break;
      case Kind::atomic:
        text += "(?>";
        write(node.children[0]);
        text += ')';
        break;
      case Kind::line_begin:
        text += "(?m:^)";
        break;
      case Kind::line_end:
        text += "(?m:$)";
        break;
      case Kind::text_begin:
        text += "\\A";
        break;
      case Kind::text_end:
        text += "\\z";
        break;
      case Kind::text_end_newline:
        text += "(?:\\z|(?=\\n\\z))";
        break;
      case Kind::word_boundary:
        write_boundary(true);
        break;
      case Kind::no_word_boundary:
        write_boundary(false);
        break;
    }
    if (text.size() > max_program) {
      fail(ErrorCode::unsupported, "[regex] the pattern is too large");
    }
  }

 private:
  void write_set(const CodeSet& set) {
    std::string ranges;
    for (CodeSet::Range range : set.ranges()) {
      if (range.first >= 0xd800 && range.first < 0xe000) {
        range.first = 0xe000;
      }
      if (range.last >= 0xd800 && range.last < 0xe000) {
        range.last = 0xd7ff;
      }
      if (range.first <= range.last) {
        ranges +=
            fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", range.first, range.last);
      }
    }
    text += ranges.empty() ? "(?!)" : "[" + ranges + "]";
  }

  void write_alternatives(const RegexNode& node) {
    text += "(?:";
    for (size_t i = 0; i < node.children.size(); ++i) {
      text += i == 0 ? "" : "|";
      write(node.children[i]);
    }
    text += ')';
  }

  void write_repeat(const RegexNode& node) {
    text += "(?:";
    write(node.children[0]);
    text += fmt::format("){{{},", node.min);
    if (node.max != RegexNode::unbounded) {
      text += std::to_string(node.max);
    }
    text += '}';
    if (node.greed == RegexNode::Greed::lazy) {
      text += '?';
    } else if (node.greed == RegexNode::Greed::possessive) {
      text += '+';
    }
  }

  void write_boundary(bool wanted) {
    Writer word;
    word.write_set(regex_word_set());
    const std::string& w = word.text;
    text += wanted ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", w)
                   : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", w);
  }
};

/// Called by PCRE2 before each item of the pattern: PCRE2's own match limit
/// begins anew at each place of the text, and its machine code counts only
/// some of what it goes back over.
struct Effort {
  uint64_t spent;
  uint64_t limit;
  size_t position;

  static int count(pcre2_callout_block* block, void* data) {
    auto& effort = *static_cast<Effort*>(data);
    size_t now = block->current_position;
    effort.spent += 1 + (now > effort.position ? now - effort.position
                                               : effort.position - now);
    effort.position = now;
    return effort.spent > effort.limit ? PCRE2_ERROR_MATCHLIMIT : 0;
  }
};

class PcreRegex : public Regex {
 public:
  PcreRegex(const std::string& program, std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(program.data()),
        program.size(),
        PCRE2_UTF | PCRE2_AUTO_CALLOUT,
        &error,
        &at,
        nullptr
    ));
    if (!code_) {
      fail(
          ErrorCode::unsupported,
          fmt::format("[regex] {}: {}", quote(pattern), message(error))
      );
    }
    // Without a compiler for this machine the interpreter does.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  bool find(std::string_view text, size_t from, Match& match, uint64_t& effort)
      const override {
    std::unique_ptr<pcre2_match_data, MatchFree> data(
        pcre2_match_data_create(1, nullptr)
    );
    if (!data) {
      fail(ErrorCode::out_of_memory, "[regex] no memory for a match");
    }
    Effort spent{effort, max_effort(text.size()), from};
    std::unique_ptr<pcre2_match_context, ContextFree> context(
        pcre2_match_context_create(nullptr)
    );
    if (!context) {
      fail(ErrorCode::out_of_memory, "[regex] no memory for a match");
    }
    pcre2_set_match_limit(context.get(), UINT32_MAX);
    pcre2_set_heap_limit(context.get(), heap_limit_kib);
    pcre2_set_callout(context.get(), Effort::count, &spent);
    auto run = [&](uint32_t options) {
      return pcre2_match(
          code_.get(),
          reinterpret_cast<PCRE2_SPTR>(text.data()),
          text.size(),
          from,
          options | PCRE2_NO_UTF_CHECK,
          data.get(),
          context.get()
      );
    };
    int found = run(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      // The interpreter keeps its state on the heap.
      found = run(PCRE2_NO_JIT);
    }
    effort = spent.spent;
    if (found == PCRE2_ERROR_NOMATCH) {
      return false;
    }
    if (found < 0) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[regex] a pattern of the tokenizer cannot be matched on this "
              "text: {}",
              message(found)
          )
      );
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    match = {ends[0], ends[1]};
    return true;
  }

 private:
  static std::string message(int error) {
    std::array<PCRE2_UCHAR, 256> buffer{};
    pcre2_get_error_message(error, buffer.data(), buffer.size());
    return reinterpret_cast<const char*>(buffer.data());
  }

  std::unique_ptr<pcre2_code, CodeFree> code_;
};

}  // namespace

std::shared_ptr<const Regex> compile_pcre(
    const RegexNode& tree, std::string_view pattern
) {
  Writer writer;
  writer.write(tree);
  return std::make_shared<PcreRegex>(writer.text, pattern);
}

}  // namespace mlxcel::tokenizer
