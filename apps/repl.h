#pragma once

#include <string>

#include "apps/chat_session.h"

namespace mlxcel::apps {

/// Reads messages from standard input and answers them until /bye or the end
/// of the input. cli.md 7.
void chat_loop(ChatSession& session, const std::string& system);

}  // namespace mlxcel::apps
