#include "apps/chat_session.h"

#include <fmt/format.h>

#include "apps/interrupt.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

ChatSession::ChatSession(
    const ModelOptions& model,
    const SamplingOptions& sampling,
    bool use_template
)
    : checkpoint_(load_model(model.model, model.load_options())),
      use_template_(use_template),
      params_(sampling.params(checkpoint_)) {
  if (use_template) {
    template_ = chat::ChatTemplate::load(checkpoint_.model.directory);
  }
  engine_ = std::make_unique<Engine>(*checkpoint_.model.model, params_.context);
  sequence_ = engine_->open();
}

std::vector<int32_t> ChatSession::prompt(const chat::Conversation& conversation
) const {
  const Tokenizer& tokenizer = *checkpoint_.tokenizer;
  if (!use_template_) {
    return encode_rendered_prompt(tokenizer, conversation.joined());
  }
  if (!template_) {
    return encode_rendered_prompt(tokenizer, conversation.plain());
  }
  chat::RenderInput input;
  input.messages = conversation.to_json();
  input.add_generation_prompt = true;
  input.bos_token = tokenizer.bos_token();
  input.eos_token = tokenizer.eos_token();
  return encode_rendered_prompt(tokenizer, template_->render(input));
}

GenerateResult ChatSession::reply(
    const chat::Conversation& conversation,
    const std::function<void(std::string_view)>& emit
) {
  InterruptScope scope;
  return generate(
      *engine_,
      *sequence_,
      *checkpoint_.tokenizer,
      prompt(conversation),
      params_,
      emit,
      &interrupted()
  );
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
