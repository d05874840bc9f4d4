#pragma once

#include "mlxcel/tokenizer/normalize/text.h"

namespace mlxcel::tokenizer {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Unicode normalization (UAX #15) with the tables of the official library,
/// which are older than those of utf8proc.
void normalize(Text& text, NormalForm form);

}  // namespace mlxcel::tokenizer
