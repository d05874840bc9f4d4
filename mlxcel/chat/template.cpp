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
constexpr const char* kReasoning[] = {
    "reasoning_content", "thinking", "reasoning"};

[[noreturn]] void bad_input(const std::string& message) {
  fail(ErrorCode::usage, "[chat template] " + message);
}

void require_objects(const Json& list, const char* what) {
  if (!list.is_array()) {
    bad_input(fmt::format(
        "{}: expected a list of objects, got {}", what, list.preview()
    ));
  }
  size_t index = 0;
  for (const Json& item : list.elements()) {
    if (!item.is_object()) {
      bad_input(fmt::format(
          "{}[{}]: expected an object, got {}", what, index, item.preview()
      ));
    }
    ++index;
  }
}

// A message without what is null, and with its reasoning under the names that
// templates read (transformers, _normalize_chat_messages and
// _alias_reasoning_fields).
Document normalize(const Document& message) {
  Document plain = Document::object();
  const Document* reasoning = nullptr;
  for (const char* field : kReasoning) {
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

/// Ends a rendering inside the last message: a mark goes behind the text that
/// is to go on, and the rendering up to the mark is the prompt (transformers,
/// render_jinja_template).
class Continuation {
 public:
  Continuation(
      Document& messages, const std::string& member, std::string_view source
  )
      : member_(member) {
    Document& message = messages.back();
    std::vector<std::string> names = members(message);
    if (std::none_of(names.begin(), names.end(), [&](const auto& name) {
          return source.find(name) != std::string_view::npos;
        })) {
      reject("the template does not read it");
    }
    for (const std::string& name : names) {
      mark(message[name]);
    }
  }

  /// The rendering up to the mark.
  std::string cut(std::string rendered) const {
    std::string_view mark = chat::strip(kContinueMark, chat::Side::both);
    size_t at = rendered.rfind(mark);
    if (at == std::string::npos ||
        rendered.find(chat::strip(text_, chat::Side::both)) ==
            std::string::npos) {
      reject("the template does not show it as it is");
    }
    bool spaced =
        rendered.compare(at, kContinueMark.size(), kContinueMark) == 0;
    rendered.resize(at);
    if (!spaced) {
      rendered.resize(chat::strip(rendered, chat::Side::right).size());
    }
    return rendered;
  }

 private:
  [[noreturn]] void reject(const char* reason) const {
    bad_input(fmt::format(
        "continue_final_message: {} of the last message: {}", member_, reason
    ));
  }

  // All names under which the message has the member.
  std::vector<std::string> members(const Document& message) const {
    auto found = message.find(member_);
    if (found == message.end()) {
      reject("it is absent");
    }
    std::vector<std::string> names = {member_};
    bool reasoning = member_ == kReasoning[0] || member_ == kReasoning[1] ||
                     member_ == kReasoning[2];
    for (const char* name : kReasoning) {
      auto other = message.find(name);
      if (reasoning && name != member_ && other != message.end() &&
          *other == *found) {
        names.push_back(name);
      }
    }
    return names;
  }

  void mark(Document& content) {
    Document* text = content.is_array() ? nullptr : &content;
    for (size_t i = content.is_array() ? content.size() : 0; i-- > 0;) {
      if (content[i].is_object() && content[i].contains("text")) {
        text = &content[i]["text"];
        break;
      }
    }
    if (!text || !text->is_string()) {
      reject("it has no text");
    }
    text_ = text->get<std::string>();
    *text = text_ + std::string(kContinueMark);
  }

  std::string member_;
  std::string text_;
};

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

// Arguments of tool calls that are JSON text become what they say.
void parse_arguments(Document& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    auto calls = messages[i].find("tool_calls");
    if (calls == messages[i].end() || !calls->is_array()) {
      continue;
    }
    for (size_t j = 0; j < calls->size(); ++j) {
      Document& call = (*calls)[j];
      if (!call.is_object() || !call.contains("function")) {
        continue;
      }
      Document& function = call["function"];
      if (!function.is_object() || !function.contains("arguments") ||
          !function["arguments"].is_string()) {
        continue;
      }
      std::string name =
          fmt::format("messages[{}].tool_calls[{}].function.arguments", i, j);
      const auto& text = function["arguments"].get_ref<const std::string&>();
      function["arguments"] = Document(Json::parse(text, name).raw());
    }
  }
}

void set_kwargs(Variables& variables, const Json& kwargs) {
  if (!kwargs.is_object()) {
    bad_input("template arguments: expected an object");
  }
  for (const auto& [name, value] : kwargs.raw().items()) {
    for (const char* own :
         {"messages", "tools", "documents", "add_generation_prompt"}) {
      if (name == own) {
        bad_input(fmt::format("template arguments: '{}' is not free", name));
      }
    }
    variables.set(name, value);
  }
}

// Those that the caller's own may replace.
void set_plain_variables(
    Variables& variables,
    const std::vector<std::pair<std::string, std::string>>& special_tokens,
    const RenderInput& input
) {
  variables.set("bos_token", "");
  variables.set("eos_token", "");
  for (const auto& [name, token] : special_tokens) {
    variables.set(name, token);
  }
  if (input.bos_token) {
    variables.set("bos_token", *input.bos_token);
  }
  if (input.eos_token) {
    variables.set("eos_token", *input.eos_token);
  }
  if (input.enable_thinking) {
    variables.set("enable_thinking", *input.enable_thinking);
  }
  if (input.kwargs) {
    set_kwargs(variables, *input.kwargs);
  }
}

}  // namespace

std::string ChatTemplate::State::render(
    const RenderInput& input, std::vector<chat::GeneratedPart>& generated
) const {
  bool with_tools = input.tools && !input.tools->is_null();
  const Variant& chosen = choose(input.template_name, with_tools);
  if (chosen.error) {
    std::rethrow_exception(chosen.error);
  }
  Document messages = normalize_messages(input.messages);
  if (parses_arguments) {
    parse_arguments(messages);
  }
  if (with_tools) {
    require_objects(*input.tools, "tools");
  }
  if (input.documents) {
    require_objects(*input.documents, "documents");
  }
  std::optional<Continuation> continuation;
  if (input.continue_final_message) {
    if (input.add_generation_prompt) {
      bad_input("continue_final_message excludes a generation prompt");
    }
    continuation.emplace(messages, input.continued_member, chosen.source);
  }
  Variables variables;
  set_plain_variables(variables, special_tokens, input);
  // DeepSeek's templates ask for `thinking` instead.
  if (input.enable_thinking && !variables.has("thinking") &&
      chat::tests_if_defined(*chosen.program, "thinking")) {
    variables.set("thinking", *input.enable_thinking);
  }
  variables.set("tools", with_tools ? input.tools->raw() : Document());
  variables.set(
      "documents", input.documents ? input.documents->raw() : Document()
  );
  variables.set("add_generation_prompt", input.add_generation_prompt);
  variables.set("messages", std::move(messages));
  std::string text = chat::render(
      *chosen.program,
      chosen.label,
      variables,
      input.limits,
      input.now,
      &generated
  );
  return continuation ? continuation->cut(std::move(text)) : text;
}

void ChatTemplate::State::add(
    std::string name, std::string source, std::string label
) {
  Variant variant;
  try {
    variant.program = chat::compile(source, label);
  } catch (const Error&) {
    variant.error = std::current_exception();
  }
  variant.name = std::move(name);
  variant.source = std::move(source);
  variant.label = std::move(label);
  for (Variant& own : variants) {
    if (own.name == variant.name) {
      own = std::move(variant);
      return;
    }
  }
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

std::string ChatTemplate::State::names() const {
  std::string all;
  for (const Variant& variant : variants) {
    all += (all.empty() ? "" : ", ") + variant.name;
  }
  return all;
}

const ChatTemplate::State::Variant& ChatTemplate::State::choose(
    const std::optional<std::string>& wanted, bool with_tools
) const {
  if (wanted) {
    if (const Variant* named = find(*wanted)) {
      return *named;
    }
    bad_input(fmt::format(
        "{}: no template is named {}, only: {}", origin, quote(*wanted), names()
    ));
  }
  if (const Variant* tools = with_tools ? find(kToolName) : nullptr) {
    return *tools;
  }
  if (const Variant* plain = find(kDefaultName)) {
    return *plain;
  }
  fail(
      ErrorCode::invalid_input,
      fmt::format(
          "[chat template] {}: none of its templates is named 'default': {}",
          origin,
          names()
      )
  );
}

ChatTemplate ChatTemplate::from_source(
    const std::string& source, const std::string& name
) {
  auto state = std::make_shared<State>();
  state->origin = name;
  state->add(kDefaultName, source, name);
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
  std::vector<chat::GeneratedPart> ignored;
  return state_->render(input, ignored);
}

RenderedChat ChatTemplate::render_with_spans(const RenderInput& input) const {
  if (input.continue_final_message) {
    bad_input("continue_final_message excludes the spans of what was said");
  }
  std::vector<chat::GeneratedPart> parts;
  RenderedChat chat = {state_->render(input, parts), {}};
  for (const chat::GeneratedPart& part : parts) {
    size_t begin = std::min(part.begin, chat.text.size());
    std::string_view rest = std::string_view(chat.text).substr(begin);
    chat.generated.push_back(
        {begin, begin + chat::byte_offset(rest, part.length)}
    );
  }
  return chat;
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
