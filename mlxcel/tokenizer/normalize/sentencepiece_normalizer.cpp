#include "mlxcel/tokenizer/models/word_mark.h"
#include "mlxcel/tokenizer/normalize/char_map.h"
#include "mlxcel/tokenizer/normalize/sentencepiece_text.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

class SentencePieceNormalizer : public Normalizer {
 public:
  SentencePieceNormalizer(
      const SentencePieceFile& file,
      const std::string& path,
      const TokenAutomaton& kept,
      bool at_start_only
  )
      : map_(file.char_map, path),
        kept_(kept),
        space_(file.escape_whitespaces ? word_mark : " "),
        dummy_(file.add_dummy_prefix),
        suffix_(file.whitespace_as_suffix),
        trims_(file.remove_extra_whitespaces),
        at_start_only_(at_start_only) {}

  void apply(Text& text) const override {
    if (text.empty()) {
      return;
    }
    bool at_start = text.origin(0).begin == 0;
    Draft draft = write(text.view(), at_start);
    TextEditor editor(text);
    size_t done = 0;  // bytes of the draft
    for (const Change& change : draft.changes) {
      size_t end = std::min(change.end, draft.text.size());
      std::string_view put(draft.text);
      put = put.substr(done, end - done);
      done = end;
      if (change.count == 0) {
        insert(editor, put);
      } else if (put.empty()) {
        editor.skip(change.count);
      } else {
        editor.swap(change.count, put);
      }
    }
    editor.finish();
  }

 private:
  /// What becomes of the next `count` bytes of the input: the draft up to
  /// `end`.
  struct Change {
    size_t count;
    size_t end;
  };
  struct Draft {
    std::string text;
    std::vector<Change> changes;
  };

  static void insert(TextEditor& editor, std::string_view put) {
    if (put.empty()) {
      return;
    }
    if (editor.rest().empty()) {
      editor.insert(put);
    } else {
      editor.insert_before(put);
    }
  }

  /// The next bytes of the input and what they become.
  CharMap::Match next(std::string_view rest, MatchEffort& effort) const {
    size_t kept = kept_.longest(rest, effort);
    if (kept > 0) {
      return {kept, rest.substr(0, kept)};
    }
    CharMap::Match match = map_.find(rest);
    if (match.length == 0) {
      match.length = utf8::length(static_cast<unsigned char>(rest[0]));
      match.replacement = rest.substr(0, match.length);
    }
    return match;
  }

  Draft write(std::string_view input, bool at_start) const {
    Draft draft;
    std::string& out = draft.text;
    out.reserve(input.size() * 3 / 2 + word_mark.size());
    MatchEffort effort(input);
    size_t begin = 0;
    while (trims_ && begin < input.size()) {
      CharMap::Match match = next(input.substr(begin), effort);
      if (match.replacement != " ") {
        break;
      }
      begin += match.length;
      draft.changes.push_back({match.length, 0});
    }
    if (begin == input.size()) {
      return draft;
    }
    bool dummy = dummy_ && (at_start || !at_start_only_);
    if (dummy && !suffix_) {
      out += space_;
      draft.changes.push_back({0, out.size()});
    }
    bool after_space = trims_;
    while (begin < input.size()) {
      CharMap::Match match = next(input.substr(begin), effort);
      std::string_view put = match.replacement;
      while (after_space && put.starts_with(' ')) {
        put.remove_prefix(1);
      }
      for (char c : put) {
        if (c == ' ') {
          out += space_;
        } else {
          out += c;
        }
      }
      if (!put.empty()) {
        after_space = put.ends_with(' ');
      }
      after_space = after_space && trims_;
      draft.changes.push_back({match.length, out.size()});
      begin += match.length;
    }
    while (trims_ && out.ends_with(space_)) {
      out.resize(out.size() - space_.size());
    }
    if (dummy && suffix_) {
      // Later changes end where the trimmed text does.
      for (Change& change : draft.changes) {
        change.end = std::min(change.end, out.size());
      }
      out += space_;
      draft.changes.push_back({0, out.size()});
    }
    return draft;
  }

  CharMap map_;
  const TokenAutomaton& kept_;
  std::string_view space_;
  bool dummy_;
  bool suffix_;
  bool trims_;
  bool at_start_only_;
};

}  // namespace

std::unique_ptr<Normalizer> make_sentencepiece_normalizer(
    const SentencePieceFile& file,
    const std::string& path,
    const SentencePieceModel& model,
    bool prefix_at_start_only
) {
  return std::make_unique<SentencePieceNormalizer>(
      file, path, model.user_defined(), prefix_at_start_only
  );
}

}  // namespace mlxcel::tokenizer
