#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlxcel::tokenizer {

struct Piece;

/// Valid UTF-8 on its way from the input to the model. Knows for each byte
/// where in the input it comes from, if that is asked for.
class Text {
 public:
  /// The bytes of the input that a byte stands for.
  struct Origin {
    size_t begin;
    size_t end;
  };

  /// A view of `part`, which is at byte `offset` of the input. `tracked`:
  /// keep origins.
  Text(std::string_view part, size_t offset, bool tracked);
  /// A view of a piece of another text.
  explicit Text(const Piece& piece);
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  std::string_view view() const {
    return view_;
  }
  bool empty() const {
    return view_.empty();
  }
  bool tracked() const {
    return tracked_;
  }
  /// Only of a tracked text.
  Origin origin(size_t byte) const;

 private:
  friend class TextEditor;
  friend void apply_changes(Text&, const std::vector<struct TextChange>&);
  friend void check_growth(const Text&, size_t);

  std::string_view view_;
  std::string own_;  // what view_ shows once the text has been edited
  size_t offset_;
  size_t limit_;  // of growth, against files whose steps multiply
  std::vector<Origin> origins_;  // empty until the text has been edited
  bool tracked_;
};

/// Rewrites a text from left to right. What is put in takes the origin that
/// the official library gives it. Throws Error(invalid_input) where a text
/// grows beyond 64 times what it was.
class TextEditor {
 public:
  /// Nothing changes before finish().
  explicit TextEditor(Text& text);

  size_t position() const {
    return position_;
  }
  std::string_view rest() const {
    return text_.view_.substr(position_);
  }
  /// Keeps the next `count` bytes.
  void keep(size_t count);
  /// Leaves out the next `count` bytes.
  void skip(size_t count);
  /// Puts `replacement` in place of the next `count` bytes, at least one, and
  /// gives it the origin of the first.
  void swap(size_t count, std::string_view replacement);
  /// Puts in text with the origin of the byte before.
  void insert(std::string_view addition);
  /// Puts in text with the origin of the next byte, or of the one that is
  /// `ahead` bytes behind it.
  void insert_before(std::string_view addition) {
    insert_from(0, addition);
  }
  void insert_from(size_t ahead, std::string_view addition);
  /// Keeps the rest and changes the text.
  void finish();

 private:
  void put(std::string_view bytes, Text::Origin origin);

  Text& text_;
  size_t position_ = 0;
  std::string out_;
  std::vector<Text::Origin> origins_;
};

/// A character of a new text and how many characters were added with it: 1:
/// it is new; 0: it replaces the next one; -n: n behind that one go too.
struct TextChange {
  char32_t c;
  ptrdiff_t added;
};

/// Rewrites a whole text as the official library aligns it. Throws
/// Error(invalid_input) like TextEditor.
void apply_changes(Text& text, const std::vector<TextChange>& changes);
/// Throws it if a text may not grow to `size` bytes.
void check_growth(const Text& text, size_t size);

/// A part of a text, the unit that pre-tokenizers cut.
struct Piece {
  const Text* text;
  size_t begin;
  size_t end;

  std::string_view view() const {
    return text->view().substr(begin, end - begin);
  }
  size_t size() const {
    return end - begin;
  }
};

/// Takes pieces in order.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void take(const Piece& piece) = 0;
};

}  // namespace mlxcel::tokenizer
