#pragma once

#include <string>
#include <vector>

#include "mlxcel/chat/template.h"
#include "mlxcel/core/json.h"

namespace mlxcel {

/// One turn of a chat of plain text.
struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

/// The turns as the messages of a RenderInput.
Json to_messages(const std::vector<ChatMessage>& messages);

/// The prompt for a model that has no chat template: the system text as it
/// is, then lines that begin with `User: ` and `Assistant: `, at the end
/// `Assistant:` for the model to continue.
std::string plain_prompt(
    const std::vector<ChatMessage>& messages, bool add_generation_prompt = true
);

/// The same of the messages of any caller: `content` is a text or a list of
/// parts whose texts count. Throws Error(invalid_input) naming what such a
/// prompt cannot show.
std::string plain_prompt(const RenderInput& input);

/// The texts alone, a line end between them (--no-chat-template).
std::string joined_prompt(const std::vector<ChatMessage>& messages);

}  // namespace mlxcel
