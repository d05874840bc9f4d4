#pragma once

#include "mlxcel/chat/template.h"
#include "mlxcel/core/utf8.h"
#include "tests/fuzz/fuzz.h"

namespace mlxcel::fuzz {

/// Limits that a template reaches in a moment.
inline TemplateLimits small_limits() {
  TemplateLimits limits;
  limits.steps = 100'000;
  limits.text = size_t{1} << 20;
  limits.memory = size_t{16} << 20;
  limits.seconds = 5;
  return limits;
}

/// Renders; a result must be valid text with spans inside it.
inline void check_rendering(
    const ChatTemplate& chat_template, const RenderInput& input
) {
  try {
    RenderedChat chat = chat_template.render_with_spans(input);
    require(!find_invalid_utf8(chat.text));
    require(chat.text.size() <= input.limits.text);
    for (const TextSpan& span : chat.generated) {
      require(span.begin <= span.end && span.end <= chat.text.size());
      std::string_view part = chat.text;
      part = part.substr(span.begin, span.end - span.begin);
      require(!find_invalid_utf8(part));
    }
  } catch (const Error&) {
  }
}

}  // namespace mlxcel::fuzz
