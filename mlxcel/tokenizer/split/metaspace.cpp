#include "mlxcel/tokenizer/split/metaspace.h"

#include "mlxcel/tokenizer/split/split.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

Metaspace::Scheme parse_scheme(const Json& json) {
  const std::string& name = json.as_string();
  if (name == "always") {
    return Metaspace::Scheme::always;
  }
  if (name == "first") {
    return Metaspace::Scheme::first;
  }
  if (name == "never") {
    return Metaspace::Scheme::never;
  }
  json.reject("expected always, first or never, got " + json.preview());
}

}  // namespace

Metaspace::Metaspace(const Json& json)
    : mark_(json.at("replacement").as_string()),
      split_(json.bool_or("split", true)) {
  char32_t c = 0;
  if (!utf8::single(mark_, c)) {
    json.at("replacement").reject("expected one character");
  }
  if (auto scheme = json.find("prepend_scheme")) {
    scheme_ = parse_scheme(*scheme);
  }
  if (!json.bool_or("add_prefix_space", true)) {
    if (json.has("prepend_scheme") && scheme_ != Scheme::never) {
      json.at("add_prefix_space").reject("contradicts prepend_scheme");
    }
    scheme_ = Scheme::never;
  }
}

void Metaspace::split(const Piece& piece, PieceSink& sink) const {
  Text text(piece);
  std::string_view view = text.view();
  bool prepend = scheme_ == Scheme::always ||
                 (scheme_ == Scheme::first && text.origin(0).begin == 0);
  TextEditor editor(text);
  if (prepend && view.front() != ' ' && !view.starts_with(mark_)) {
    editor.insert_before(mark_);
  }
  for (size_t at = view.find(' '); at != std::string_view::npos;
       at = view.find(' ', at + 1)) {
    editor.keep(at - editor.position());
    editor.swap(1, mark_);
  }
  editor.finish();
  Piece whole{&text, 0, text.view().size()};
  if (!split_) {
    sink.take(whole);
    return;
  }
  // The mark is a character: it can only be found where one begins.
  SplitCollector collector(whole, SplitBehavior::merged_with_next, sink);
  view = text.view();
  size_t done = 0;
  for (size_t at = view.find(mark_); at != std::string_view::npos;
       at = view.find(mark_, done)) {
    if (at != done) {
      collector.add(done, at, false);
    }
    done = at + mark_.size();
    collector.add(at, done, true);
  }
  if (done != view.size()) {
    collector.add(done, view.size(), false);
  }
  collector.finish();
}

}  // namespace mlxcel::tokenizer
