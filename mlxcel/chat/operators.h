#pragma once

#include "mlxcel/chat/ast.h"
#include "mlxcel/chat/value.h"

// The operators of the language, as Python defines them. All throw Fault for
// operands that they don't know.

namespace mlxcel::chat {

Value apply_arithmetic(Operator op, const Value& left, const Value& right);
/// `-x` and `+x`.
Value apply_sign(Operator op, const Value& value);
bool apply_comparison(Operator op, const Value& left, const Value& right);
bool contains(const Value& container, const Value& item);
/// `value[start:stop:step]`; each bound is an integer or none.
Value slice(
    const Value& value, const Value& start, const Value& stop, const Value& step
);
/// The item at `index`, counted from the end if negative; a missing value if
/// it is out of range. Of lists, tuples, ranges and strings.
Value item_at(const Value& sequence, int64_t index);

}  // namespace mlxcel::chat
