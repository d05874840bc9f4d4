#include "mlxcel/chat/conversation.h"

#include <nlohmann/json.hpp>

namespace mlxcel {

Json to_messages(const std::vector<ChatMessage>& messages) {
  auto list = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  return Json::from(std::move(list), "messages");
}

std::string plain_prompt(
    const std::vector<ChatMessage>& messages, bool add_generation_prompt
) {
  std::string text;
  for (const ChatMessage& message : messages) {
    if (message.role == "user") {
      text += "User: ";
    } else if (message.role == "assistant") {
      text += "Assistant: ";
    }
    text += message.content + '\n';
  }
  if (add_generation_prompt) {
    text += "Assistant:";
  }
  return text;
}

std::string joined_prompt(const std::vector<ChatMessage>& messages) {
  std::string text;
  for (const ChatMessage& message : messages) {
    text += text.empty() ? "" : "\n";
    text += message.content;
  }
  return text;
}

}  // namespace mlxcel
