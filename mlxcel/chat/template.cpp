#include "mlxcel/chat/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mlxcel/chat/engine.h"
#include "mlxcel/chat/names.h"
#include "mlxcel/chat/template_state.h"
#include "mlxcel/chat/text.h"

namespace mlxcel {

using Document = nlohmann::ordered_json;

namespace {

constexpr const char* kDefaultName = "default";
constexpr const char* kToolName = "tool_use";

[[noreturn]] void bad_input(const std::string& message) {
  fail(ErrorCode::usage, "[chat template] " + message);
}

void require_objects(const Json& list, const char* what) {
  if (!list.is_array()) {
    bad_input(fmt::format("{}: expected a list", what));
  }
  for (const Document& item : list.raw()) {
    if (!item.is_object()) {
      bad_input(fmt::format("{}: expected a list of objects", what));
    }
  }
}

// A message without what is null, and with its reasoning under the names that
// templates read (transformers, _normalize_chat_messages and
// _alias_reasoning_fields).
Document normalize(const Document& message) {
  Document plain = Document::object();
  const Document* reasoning = nullptr;
  for (const char* field : {"reasoning_content", "thinking", "reasoning"}) {
    auto found = message.find(field);
    if (!reasoning && found != message.end() && !found->is_null()) {
      reasoning = &*found;
    }
  }
  if (reasoning) {
    plain["thinking"] = *reasoning;
  }
  for (const auto& [key, value] : message.items()) {
    if (!value.is_null()) {
      plain[key] = value;
    }
  }
  if (reasoning) {
    plain["reasoning_content"] = *reasoning;
  }
  return plain;
}

constexpr std::string_view kContinueMark = "CONTINUE_FINAL_MESSAGE_TAG ";

// Puts a mark behind the text of the last message and returns that text.
std::string mark_final_message(Document& messages) {
  Document& message = messages.back();
  auto content = message.find("content");
  if (content == message.end()) {
    bad_input("continue_final_message: the last message has no content");
  }
  Document* text = nullptr;
  if (content->is_array()) {
    for (Document& item : *content) {
      if (item.is_object() && item.contains("text")) {
        text = &item["text"];
      }
    }
  } else {
    text = &*content;
  }
  if (!text || !text->is_string()) {
    bad_input("continue_final_message: the last message has no text");
  }
  std::string original = text->get<std::string>();
  *text = original + std::string(kContinueMark);
  return original;
}

// The rendering up to the mark.
std::string cut_at_mark(std::string rendered, const std::string& final_text) {
  std::string_view mark = chat::strip(kContinueMark, chat::Side::both);
  size_t at = rendered.rfind(mark);
  if (at == std::string::npos ||
      rendered.find(chat::strip(final_text, chat::Side::both)) ==
          std::string::npos) {
    bad_input(
        "continue_final_message: the template does not show the last message "
        "as it is"
    );
  }
  bool spaced = rendered.compare(at, kContinueMark.size(), kContinueMark) == 0;
  rendered.resize(at);
  if (!spaced) {
    rendered.resize(chat::strip(rendered, chat::Side::right).size());
  }
  return rendered;
}

/// The variables of a rendering, converted when it starts.
class Variables final : public chat::ContextMaker {
 public:
  void set(std::string name, Document value) {
    for (auto& [own, old] : values_) {
      if (own == name) {
        old = std::move(value);
        return;
      }
    }
    values_.emplace_back(std::move(name), std::move(value));
  }
  bool has(std::string_view name) const {
    return std::any_of(
        values_.begin(),
        values_.end(),
        [name](const auto& entry) { return entry.first == name; }
    );
  }
  chat::Context make() const override {
    chat::Context context;
    for (const auto& [name, value] : values_) {
      context.emplace_back(name, chat::Value::from_json(value));
    }
    return context;
  }

 private:
  std::vector<std::pair<std::string, Document>> values_;
};

Document normalize_messages(const Json& messages) {
  require_objects(messages, "messages");
  if (messages.size() == 0) {
    bad_input("messages: the conversation is empty");
  }
  Document all = Document::array();
  for (const Document& message : messages.raw()) {
    all.push_back(normalize(message));
  }
  return all;
}

void set_kwargs(Variables& variables, const Json& kwargs) {
  if (!kwargs.is_object()) {
    bad_input("template arguments: expected an object");
  }
  for (const auto& [name, value] : kwargs.raw().items()) {
    for (const char* own : {"messages", "tools", "add_generation_prompt"}) {
      if (name == own) {
        bad_input(fmt::format("template arguments: '{}' is not free", name));
      }
    }
    variables.set(name, value);
  }
}

}  // namespace

void ChatTemplate::State::add(std::string name, std::string source) {
  Variant variant;
  std::string label = name == kDefaultName ? origin : origin + "#" + name;
  try {
    variant.program = chat::compile(source, label);
  } catch (const Error&) {
    variant.error = std::current_exception();
  }
  variant.name = std::move(name);
  variant.source = std::move(source);
  variants.push_back(std::move(variant));
}

const ChatTemplate::State::Variant* ChatTemplate::State::find(
    std::string_view name
) const {
  for (const Variant& variant : variants) {
    if (variant.name == name) {
      return &variant;
    }
  }
  return nullptr;
}

const ChatTemplate::State::Variant& ChatTemplate::State::choose(bool with_tools
) const {
  if (const Variant* tools = with_tools ? find(kToolName) : nullptr) {
    return *tools;
  }
  if (const Variant* plain = find(kDefaultName)) {
    return *plain;
  }
  std::string names;
  for (const Variant& variant : variants) {
    names += (names.empty() ? "" : ", ") + variant.name;
  }
  fail(
      ErrorCode::invalid_input,
      fmt::format(
          "[chat template] {}: none of its templates is named 'default': {}",
          origin,
          names
      )
  );
}

ChatTemplate ChatTemplate::from_source(
    const std::string& source, const std::string& name
) {
  auto state = std::make_shared<State>();
  state->origin = name;
  state->add(kDefaultName, source);
  return ChatTemplate(std::move(state));
}

const std::string& ChatTemplate::name() const {
  return state_->origin;
}

const std::string& ChatTemplate::source() const {
  const State::Variant* plain = state_->find(kDefaultName);
  return plain ? plain->source : state_->variants[0].source;
}

std::vector<std::string> ChatTemplate::template_names() const {
  std::vector<std::string> names;
  for (const State::Variant& variant : state_->variants) {
    names.push_back(variant.name);
  }
  return names;
}

std::string ChatTemplate::render(const RenderInput& input) const {
  bool with_tools = input.tools && !input.tools->is_null();
  const State::Variant& chosen = state_->choose(with_tools);
  if (chosen.error) {
    std::rethrow_exception(chosen.error);
  }
  Document messages = normalize_messages(input.messages);
  if (with_tools) {
    require_objects(*input.tools, "tools");
  }
  std::string final_text;
  if (input.continue_final_message) {
    if (input.add_generation_prompt) {
      bad_input("continue_final_message excludes a generation prompt");
    }
    final_text = mark_final_message(messages);
  }

  Variables variables;
  variables.set("bos_token", "");
  variables.set("eos_token", "");
  for (const auto& [name, token] : state_->special_tokens) {
    variables.set(name, token);
  }
  if (input.bos_token) {
    variables.set("bos_token", *input.bos_token);
  }
  if (input.eos_token) {
    variables.set("eos_token", *input.eos_token);
  }
  variables.set("documents", nullptr);
  if (input.enable_thinking) {
    variables.set("enable_thinking", *input.enable_thinking);
  }
  if (input.kwargs) {
    set_kwargs(variables, *input.kwargs);
  }
  // DeepSeek's templates ask for `thinking` instead.
  if (input.enable_thinking && !variables.has("thinking") &&
      chat::tests_if_defined(*chosen.program, "thinking")) {
    variables.set("thinking", *input.enable_thinking);
  }
  variables.set("tools", with_tools ? input.tools->raw() : Document());
  variables.set("add_generation_prompt", input.add_generation_prompt);
  variables.set("messages", std::move(messages));

  std::string text = chat::render(
      *chosen.program, state_->origin, variables, input.limits, input.now
  );
  return input.continue_final_message ? cut_at_mark(std::move(text), final_text)
                                      : text;
}

bool ChatTemplate::renders_images() const {
  constexpr const char* kProbe = "kjq83 probe";
  Document text = {{"type", "text"}, {"text", kProbe}};
  Document image = {{"type", "image"}};
  auto attempt = [&](Document content) {
    Document messages = {{{"role", "user"}, {"content", std::move(content)}}};
    return render(RenderInput(Json::from(std::move(messages), "probe")));
  };
  try {
    std::string without = attempt(Document::array({text}));
    std::string with = attempt(Document::array({image, text}));
    // A template that only knows strings prints the list as it is.
    return with != without && with.find(kProbe) != std::string::npos &&
           with.find("'type'") == std::string::npos &&
           with.find("\"type\"") == std::string::npos;
  } catch (const Error&) {
    return false;
  }
}

bool ChatTemplate::closes_thought_channel() const {
  constexpr std::string_view kOpen = "<|channel>thought";
  constexpr std::string_view kClose = "<channel|>";
  const std::string& text = source();
  for (const char* line_end : {"\\n", "\n"}) {
    std::string scaffold = std::string(kOpen) + line_end + std::string(kClose);
    if (text.find(scaffold) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace mlxcel
