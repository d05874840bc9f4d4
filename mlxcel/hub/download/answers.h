#pragma once

#include <optional>
#include <string>

#include "mlxcel/core/error.h"
#include "mlxcel/hub/download/http.h"

namespace mlxcel::hub {

/// Whether the hub may answer otherwise a little later.
bool is_passing(long status);

/// Seconds that an answer asks to wait: Retry-After, else the reset of a
/// RateLimit header (draft-ietf-httpapi-ratelimit-headers).
std::optional<double> asked_pause(const HttpResponse& response);

/// What an answer other than success means. `subject` is what was asked for,
/// `with_token` whether a token was sent.
Error refusal(
    const HttpResponse& response, const std::string& subject, bool with_token
);

}  // namespace mlxcel::hub
