#include "mlxcel/chat/conversation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace mlxcel {

namespace {

[[noreturn]] void cannot_show(const std::string& what, const char* why) {
  fail(
      ErrorCode::invalid_input,
      fmt::format(
          "[chat] {}: {}, and the model has no chat template", what, why
      )
  );
}

// Of a `content`: a text, or the texts of its parts.
std::string plain_text(const std::optional<Json>& content, const char* what) {
  if (!content || content->is_string()) {
    return content ? content->as_string() : "";
  }
  if (!content->is_array()) {
    cannot_show(what, "not a text");
  }
  std::string text;
  for (const Json& part : content->elements()) {
    auto own = part.is_object() ? part.find("text") : std::nullopt;
    if (!own || !own->is_string()) {
      cannot_show(what, "a part is not a text");
    }
    text += own->as_string();
  }
  return text;
}

}  // namespace

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

std::string plain_prompt(const RenderInput& input) {
  if (input.tools && input.tools->size() > 0) {
    cannot_show("tools", "there are some");
  }
  if (input.documents && input.documents->size() > 0) {
    cannot_show("documents", "there are some");
  }
  std::vector<ChatMessage> messages;
  size_t index = 0;
  for (const Json& message : input.messages.elements()) {
    std::string where = fmt::format("messages[{}]", index++);
    if (!message.is_object()) {
      cannot_show(where, "not an object");
    }
    if (auto calls = message.find("tool_calls"); calls && calls->size() > 0) {
      cannot_show(where + ".tool_calls", "there are some");
    }
    auto role = message.find("role");
    if (!role || !role->is_string()) {
      cannot_show(where + ".role", "not a text");
    }
    std::string content = where + ".content";
    messages.push_back(
        {role->as_string(),
         plain_text(message.find("content"), content.c_str())}
    );
  }
  std::string text = plain_prompt(messages, input.add_generation_prompt);
  if (input.continue_final_message && text.ends_with('\n')) {
    text.pop_back();
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
