#pragma once

#include <memory>

#include "mlxcel/core/json.h"
#include "mlxcel/tokenizer/normalize/normalizer.h"

namespace mlxcel::tokenizer {

/// Normalizers that look at one character after the other.

/// Character by character: no final sigma.
std::unique_ptr<Normalizer> make_lowercase();
/// Leaves out combining marks.
std::unique_ptr<Normalizer> make_strip_accents();
/// The spaces and control characters of nmt_nfkc of sentencepiece.
std::unique_ptr<Normalizer> make_nmt();
/// Spells the bytes of the text in the byte-level alphabet.
std::unique_ptr<Normalizer> make_byte_spelling();
/// BertNormalizer: clean-up, spaces around CJK characters, accents, case.
std::unique_ptr<Normalizer> make_bert_normalizer(const Json& json);

}  // namespace mlxcel::tokenizer
