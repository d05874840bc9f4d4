#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mlxcel::tokenizer {

/// The byte-level alphabet: a printable character for each byte
/// (bytes_to_unicode of GPT-2's encoder.py). All are below U+0144.
char32_t byte_character(unsigned char byte);

/// Appends `bytes` spelt in the alphabet.
void append_byte_level(std::string& out, std::string_view bytes);

/// Appends the bytes that `token` spells, or the token itself if a character
/// is outside the alphabet.
void append_from_byte_level(std::string& out, std::string_view token);

}  // namespace mlxcel::tokenizer
