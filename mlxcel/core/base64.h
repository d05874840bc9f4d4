#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mlxcel {

/// Padded Base64 (RFC 4648).
std::string encode_base64(std::string_view bytes);

/// Whether the last character may hold bits that belong to no byte.
enum class StrayBits { ignored, refused };

/// The bytes of padded Base64; empty if `text` is anything else.
std::optional<std::string> decode_base64(
    std::string_view text, StrayBits stray
);

}  // namespace mlxcel
