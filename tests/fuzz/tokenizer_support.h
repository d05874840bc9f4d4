#pragma once

#include <numeric>
#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/core/utf8.h"
#include "mlxcel/tokenizer/detokenizer.h"
#include "mlxcel/tokenizer/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/model_folder.h"

namespace mlxcel::fuzz {

/// What holds of any tokenizer and text.
inline void check_text(const Tokenizer& tokenizer, std::string_view text) {
  Encoding encoding = tokenizer.encode_with_offsets(text);
  require(encoding.ids == tokenizer.encode(text));
  require(encoding.ids.size() == encoding.offsets.size());
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    require(encoding.ids[i] >= 0);
    ByteRange range = encoding.offsets[i];
    require(range.begin <= range.end && range.end <= text.size());
  }
  require(!find_invalid_utf8(tokenizer.decode(encoding.ids, false)));
  require(!find_invalid_utf8(tokenizer.decode(encoding.ids, true)));
}

inline void check_stream(
    const Tokenizer& tokenizer, const std::vector<int32_t>& ids
) {
  StreamingDetokenizer stream(tokenizer, {}, false);
  std::string text;
  for (int32_t id : ids) {
    text += stream.push(id);
  }
  text += stream.flush();
  require(!find_invalid_utf8(text));
}

/// Loads the folder's tokenizer and uses it in every way.
inline void check_tokenizer(const ModelFolder& folder) {
  try {
    auto tokenizer = Tokenizer::load(folder.path());
    static constexpr std::string_view texts[] = {
        "",
        " ",
        "Hello, world's 12345  a\n\t b",
        "e\u0301\u4e2d\u6587 \U0001f468\u200d\U0001f469 \ufb01\u0130\u00df<s>",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab<a></s>\u2581x",
    };
    for (std::string_view text : texts) {
      try {
        check_text(*tokenizer, text);
      } catch (const Error&) {
      }
    }
    std::vector<int32_t> ids(std::min<size_t>(tokenizer->vocab_size() + 2, 600)
    );
    std::iota(ids.begin(), ids.end(), 0);
    require(!find_invalid_utf8(tokenizer->decode(ids, false)));
    check_stream(*tokenizer, ids);
  } catch (const Error&) {
  }
}

}  // namespace mlxcel::fuzz
