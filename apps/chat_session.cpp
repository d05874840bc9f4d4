#include "apps/chat_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/interrupt.h"
#include "mlxcel/chat/template_error.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

void print_token_ids(const char* what, const std::vector<int32_t>& ids) {
  fmt::print(stderr, "{} ids: [{}]\n", what, fmt::join(ids, ", "));
}

}  // namespace

ChatSession::ChatSession(
    const std::string& directory,
    const ModelOptions& model,
    const SamplingOptions& sampling,
    bool use_template
)
    : checkpoint_(load_model(directory, model.load_options())),
      use_template_(use_template),
      params_(sampling.params(checkpoint_)) {
  if (use_template) {
    template_ = ChatTemplate::load(checkpoint_.model.directory);
  }
  engine_ = std::make_unique<Engine>(*checkpoint_.model.model, params_.context);
  sequence_ = engine_->open();
}

std::vector<int32_t> ChatSession::prompt(
    const std::vector<ChatMessage>& conversation
) const {
  const Tokenizer& tokenizer = *checkpoint_.tokenizer;
  if (!use_template_) {
    return encode_rendered_prompt(tokenizer, joined_prompt(conversation));
  }
  if (!template_) {
    return encode_rendered_prompt(tokenizer, plain_prompt(conversation));
  }
  try {
    RenderInput input(to_messages(conversation));
    return encode_rendered_prompt(tokenizer, template_->render(input));
  } catch (const TemplateError& error) {
    fail(
        ErrorCode::invalid_input,
        error.message() + "; --no-chat-template does without the template"
    );
  }
}

GenerateResult ChatSession::reply(
    const std::vector<ChatMessage>& conversation,
    const std::function<void(std::string_view)>& emit
) {
  InterruptScope scope;
  std::vector<int32_t> tokens = prompt(conversation);
  bool print_ids = os::environment("MLXCEL_PRINT_TOKEN_IDS") != nullptr;
  if (print_ids) {
    print_token_ids("prompt", tokens);
  }
  GenerateResult result = generate(
      *engine_,
      *sequence_,
      *checkpoint_.tokenizer,
      tokens,
      params_,
      emit,
      &interrupted()
  );
  if (print_ids) {
    print_token_ids("generated", result.tokens);
  }
  return result;
}

std::vector<ChatMessage> opening(const std::string& system) {
  std::vector<ChatMessage> conversation;
  if (!system.empty()) {
    conversation.push_back({"system", system});
  }
  return conversation;
}

std::string describe_load(const ChatSession& session) {
  const Checkpoint& checkpoint = session.checkpoint();
  return fmt::format(
      "{} ({}) on {}, loaded in {:.2f} s, {:.2f} GB resident",
      checkpoint.model.directory,
      descriptor(checkpoint.model.type).display_name,
      checkpoint.model.backend->describe(),
      checkpoint.load_seconds,
      static_cast<double>(os::resident_bytes()) * 1e-9
  );
}

std::string describe_speed(const GenerateResult& result) {
  double seconds = result.prompt_seconds + result.decode_seconds;
  return fmt::format(
      "[Generated {} tokens in {:.2f}s = {:.2f} tok/s; prompt {} tokens, "
      "{:.2f} tok/s]",
      result.tokens.size(),
      seconds,
      result.decode_speed(),
      result.prompt_tokens,
      result.prompt_speed()
  );
}

}  // namespace mlxcel::apps
