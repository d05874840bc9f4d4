#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mlxcel::chat {

/// A float as Python prints it: the shortest digits that read back equal,
/// with an exponent below 1e-4 and from 1e16.
std::string format_real(double value);
/// What int(text, base) and float(text) accept; empty otherwise. Integers
/// beyond 64 bits throw Fault.
std::optional<int64_t> parse_integer(std::string_view text, int base);
std::optional<double> parse_real(std::string_view text);

/// Throw Fault where the result does not fit 64 bits.
int64_t add(int64_t a, int64_t b);
int64_t subtract(int64_t a, int64_t b);
int64_t multiply(int64_t a, int64_t b);
int64_t power(int64_t base, int64_t exponent);
/// Rounded towards minus infinity, as Python's // and %; b is not zero.
int64_t floor_divide(int64_t a, int64_t b);
double floor_divide(double a, double b);
int64_t floor_modulo(int64_t a, int64_t b);
double floor_modulo(double a, double b);
/// int(value) of a float: truncated. Throws Fault if it does not fit.
int64_t truncate(double value);
/// round(value, digits), half to even, of the exact decimal value.
double round_real(double value, int64_t digits);
int64_t round_integer(int64_t value, int64_t digits);

}  // namespace mlxcel::chat
