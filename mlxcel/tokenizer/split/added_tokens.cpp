#include "mlxcel/tokenizer/split/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/tokenizer/unicode/unicode.h"
#include "mlxcel/tokenizer/unicode/utf8.h"

namespace mlxcel::tokenizer {

namespace {

// A match may look this far ahead of where the next one starts.
constexpr size_t max_content = 4096;

bool first_is(std::string_view text, uint32_t attribute) {
  const char* p = text.data();
  return !text.empty() &&
         (unicode::attributes()[utf8::next(p)] & attribute) != 0;
}

bool last_is(std::string_view text, uint32_t attribute) {
  return !text.empty() &&
         first_is(text.substr(utf8::last_begin(text)), attribute);
}

}  // namespace

AddedTokens::AddedTokens(
    std::vector<AddedToken> tokens,
    const Vocab& vocab,
    const Normalizer* normalizer
)
    : tokens_(std::move(tokens)) {
  auto next_id = static_cast<int32_t>(vocab.count());
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.content.empty()) {
      continue;
    }
    if (token.content.size() > max_content) {
      fail(
          ErrorCode::unsupported,
          fmt::format(
              "[tokenizer] added_tokens: {} is longer than {} bytes",
              quote(token.content),
              max_content
          )
      );
    }
    int32_t id = token.id >= 0 ? token.id : find(token.content);
    if (id < 0) {
      id = vocab.find_or_none(token.content);
    }
    if (id < 0) {
      id = next_id++;
    }
    by_content_[token.content] = id;
    auto place = static_cast<size_t>(id);
    by_id_.resize(std::max(by_id_.size(), place + 1), none);
    by_id_[place] = i;
  }
  for (size_t id = 0; id < by_id_.size(); ++id) {
    const AddedToken* token = find(static_cast<int32_t>(id));
    if (token == nullptr || !token->found) {
      continue;
    }
    StringMatcher& matcher = token->normalized ? normalized_ : raw_;
    bool changes = token->normalized && normalizer != nullptr;
    matcher.add(
        changes ? normalizer->apply_to(token->content) : token->content,
        static_cast<int32_t>(id)
    );
  }
  raw_.build();
  normalized_.build();
}

void AddedTokens::make_ordinary(std::string_view content) {
  int32_t id = find(content);
  if (id >= 0 && find(id) != nullptr) {
    tokens_[by_id_[static_cast<size_t>(id)]].special = false;
  }
}

int32_t AddedTokens::find(std::string_view content) const {
  auto at = by_content_.find(content);
  return at == by_content_.end() ? -1 : at->second;
}

/// Null for a match that does not count; no shorter one is tried then.
const AddedToken* AddedTokens::accept(
    std::string_view text, const StringMatcher::Match& match, FindAdded which
) const {
  const AddedToken& token = *find(match.value);
  if (token.special && which == FindAdded::ordinary) {
    return nullptr;
  }
  bool inside = token.single_word &&
                (last_is(text.substr(0, match.begin), unicode::word) ||
                 first_is(text.substr(match.end), unicode::word));
  return inside ? nullptr : &token;
}

void AddedTokens::cut(
    std::string_view text,
    bool normalized,
    FindAdded which,
    std::vector<Part>& parts
) const {
  if (which == FindAdded::none) {
    if (!text.empty()) {
      parts.push_back({0, text.size(), -1});
    }
    return;
  }
  const StringMatcher& matcher = normalized ? normalized_ : raw_;
  size_t done = 0;
  size_t from = 0;
  StringMatcher::Match match{};
  while (!matcher.empty() && matcher.find(text, from, match)) {
    from = match.end;
    const AddedToken* token = accept(text, match, which);
    if (token == nullptr) {
      continue;
    }
    size_t begin = match.begin;
    size_t end = match.end;
    // A match before may have swallowed what this one begins with.
    while (token->lstrip && begin > done &&
           last_is(text.substr(0, begin), unicode::space)) {
      begin = utf8::last_begin(text.substr(0, begin));
    }
    begin = token->lstrip ? std::max(begin, done) : begin;
    while (token->rstrip && first_is(text.substr(end), unicode::space)) {
      end += utf8::length(static_cast<unsigned char>(text[end]));
    }
    if (done < begin) {
      parts.push_back({done, begin, -1});
    }
    parts.push_back({begin, end, match.value});
    done = end;
  }
  if (done < text.size()) {
    parts.push_back({done, text.size(), -1});
  }
}

}  // namespace mlxcel::tokenizer
