#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/chat/budget.h"
#include "mlxcel/chat/template_error.h"
#include "mlxcel/core/json.h"

namespace mlxcel {

/// What a chat template is rendered with.
struct RenderInput {
  explicit RenderInput(Json conversation) : messages(std::move(conversation)) {}

  /// A list of objects, each with `role` and mostly `content`.
  Json messages;
  /// A list of JSON schemas of functions.
  std::optional<Json> tools;
  /// A list of objects, mostly with `title` and `text`.
  std::optional<Json> documents;
  /// An object: further variables of the template. They win over the tokens
  /// and enable_thinking.
  std::optional<Json> kwargs;
  /// Ends the prompt where the reply begins.
  bool add_generation_prompt = true;
  /// Ends the prompt inside the last message, for the model to go on with.
  /// Excludes add_generation_prompt.
  bool continue_final_message = false;
  /// The member of the last message that goes on: `content`, or the reasoning
  /// under any of its names.
  std::string continued_member = "content";
  /// Which of several templates; default: "tool_use" with tools, if there is
  /// one, else "default".
  std::optional<std::string> template_name;
  /// Default: those of the model's tokenizer_config.json, else empty.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<bool> enable_thinking;
  /// The time for strftime_now, in seconds since 1970; default: now.
  std::optional<int64_t> now;
  TemplateLimits limits;
};

/// Bytes [begin, end) of a text.
struct TextSpan {
  size_t begin;
  size_t end;
};

/// A prompt, and what of it the model itself said.
struct RenderedChat {
  std::string text;
  /// The `generation` blocks of the template in the order of their ends, as
  /// transformers tracks them for its assistant masks: exact for blocks that
  /// go straight into the text, not for those in macros or filters.
  std::vector<TextSpan> generated;
};

/// A model's chat template, or several by name ("default", "tool_use").
/// Immutable; may be rendered by several threads at once.
class ChatTemplate {
 public:
  /// The template of a model directory: the `chat_template` of
  /// tokenizer_config.json (a string or a list of named ones),
  /// chat_template.jinja, and that of chat_template.json and
  /// processor_config.json, in this order, but one of the last three that
  /// handles images goes first. Files additional_chat_templates/NAME.jinja
  /// add named ones. Where nothing is declared, what is known of the family
  /// (builtin_templates.h), else nothing. Throws Error for a malformed
  /// tokenizer_config.json and Error(unsupported) for a family whose prompts
  /// no template makes; a template that cannot be parsed is reported by
  /// render().
  static std::optional<ChatTemplate> load(const std::string& model_dir);
  /// The template that is the text of a file, with the tokens of a model
  /// directory (empty: of none).
  static ChatTemplate load_file(
      const std::string& path, const std::string& model_dir
  );
  /// `name` is what errors call it: a file, an option.
  static ChatTemplate from_source(
      const std::string& source, const std::string& name
  );

  /// The prompt, exactly as transformers' apply_chat_template makes it:
  /// members of messages that are null are left out, and a message's
  /// `reasoning_content`, `thinking` or `reasoning` is there under the first
  /// two names. With tools, the template named "tool_use", if there is one.
  /// Throws TemplateError; Error(usage) for an input of the wrong shape.
  std::string render(const RenderInput& input) const;
  /// The same with the parts that the model said. Excludes
  /// continue_final_message. Throws what render() throws.
  RenderedChat render_with_spans(const RenderInput& input) const;

  /// Where the template comes from, and its text.
  const std::string& name() const;
  const std::string& source() const;
  /// The names of all templates; one "default" where there is only one.
  std::vector<std::string> template_names() const;

  /// Whether it handles the content item {"type": "image"}.
  bool renders_images() const;
  /// Whether it opens a reply with an empty thought channel, as Gemma 4's
  /// does: for such a template thinking is off by default.
  bool closes_thought_channel() const;

  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state)
      : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace mlxcel
