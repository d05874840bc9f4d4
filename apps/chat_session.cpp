#include "apps/chat_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/interrupt.h"
#include "mlxcel/chat/template_error.h"
#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"
#include "mlxcel/loading/load_request.h"

namespace mlxcel::apps {

namespace {

void print_token_ids(const char* what, const std::vector<int32_t>& ids) {
  fmt::print(stderr, "{} ids: [{}]\n", what, fmt::join(ids, ", "));
}

std::vector<int32_t> encode(
    const Tokenizer& tokenizer,
    const std::optional<ChatTemplate>& chat_template,
    bool use_template,
    const std::vector<ChatMessage>& conversation
) {
  if (!use_template) {
    return encode_rendered_prompt(tokenizer, joined_prompt(conversation));
  }
  if (!chat_template) {
    return encode_rendered_prompt(tokenizer, plain_prompt(conversation));
  }
  try {
    RenderInput input(to_messages(conversation));
    return encode_rendered_prompt(tokenizer, chat_template->render(input));
  } catch (const TemplateError& error) {
    fail(
        ErrorCode::invalid_input,
        error.message() + "; --no-chat-template does without the template"
    );
  }
}

/// Asks before the weights are loaded whether the model will fit.
class MemoryCheck {
 public:
  MemoryCheck(
      const SamplingOptions& sampling,
      bool use_template,
      const Preflight& preflight,
      const std::vector<ChatMessage>& first,
      const LoadOptions& load
  )
      : sampling_(sampling),
        use_template_(use_template),
        preflight_(preflight),
        first_(first) {
    request_.backend = load.backend;
    request_.chunk = prefill_chunk();
  }

  // A reply may fill the whole context. If even that fits, nobody needs to
  // know how long the prompt is and wait for the tokenizer.
  void run(
      const LoadRequest& checkpoint,
      const std::function<const Tokenizer&()>& tokenizer,
      std::optional<MemoryEstimate>& estimate
  ) {
    double start = os::now();
    request_.context =
        resolve_context(context_window(checkpoint.config), sampling_.context);
    TensorListing listing = list_tensors(checkpoint.directory);
    CheckpointOutline outline{
        checkpoint.entry, checkpoint.config, &listing, ""};
    MemoryEstimate measured = estimate_memory(outline, request_);
    bool over = measured.fits(memory_budget(memory_facts())) == false;
    log_debug(fmt::format(
        "[memory] estimated in {:.2f} ms", 1e3 * (os::now() - start)
    ));
    bool bounded = !first_.empty() && sampling_.max_tokens >= 0;
    if (bounded && (over || preflight_.estimate || preflight_.recommend)) {
      int64_t prompt = prompt_tokens(tokenizer(), checkpoint.directory);
      request_.context = std::max<int64_t>(
          1, std::min(request_.context, prompt + sampling_.max_tokens)
      );
      measured = estimate_memory(outline, request_);
    }
    preflight_.judge(outline, measured, request_);
    if (preflight_.estimate) {
      estimate = std::move(measured);
    }
  }

 private:
  int64_t prompt_tokens(
      const Tokenizer& tokenizer, const std::string& directory
  ) const {
    std::optional<ChatTemplate> chat_template;
    if (use_template_) {
      chat_template = ChatTemplate::load(directory);
    }
    return static_cast<int64_t>(
        encode(tokenizer, chat_template, use_template_, first_).size()
    );
  }

  const SamplingOptions& sampling_;
  bool use_template_;
  const Preflight& preflight_;
  const std::vector<ChatMessage>& first_;
  MemoryRequest request_;
};

Checkpoint load_checked(
    const std::string& directory,
    const ModelOptions& model,
    const SamplingOptions& sampling,
    bool use_template,
    const Preflight& preflight,
    const std::vector<ChatMessage>& first,
    std::optional<MemoryEstimate>& estimate
) {
  LoadOptions load = model.load_options();
  MemoryCheck check(sampling, use_template, preflight, first, load);
  load.before_weights = [&](const LoadRequest& checkpoint,
                            const std::function<const Tokenizer&()>& tokenizer
                        ) { check.run(checkpoint, tokenizer, estimate); };
  return load_model(directory, load);
}

}  // namespace

ChatSession::ChatSession(
    const std::string& directory,
    const ModelOptions& model,
    const SamplingOptions& sampling,
    bool use_template,
    const Preflight& preflight,
    const std::vector<ChatMessage>& first
)
    : checkpoint_(load_checked(
          directory, model, sampling, use_template, preflight, first, estimate_
      )),
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
  return encode(*checkpoint_.tokenizer, template_, use_template_, conversation);
}

GenerateResult ChatSession::reply(
    const std::vector<ChatMessage>& conversation,
    const std::function<void(std::string_view)>& emit
) {
  InterruptScope scope;
  double start = os::now();
  std::vector<int32_t> tokens = prompt(conversation);
  double encoded = os::now();
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
  if (os::environment("MLXCEL_PROFILE_TTFT") != nullptr) {
    log_info(fmt::format(
        "[TTFT] generate setup={:.1f}ms prefill={:.1f}ms decode={:.1f}ms "
        "prompt={} tokens={}",
        1e3 * (encoded - start),
        1e3 * result.prompt_seconds,
        1e3 * result.decode_seconds,
        result.prompt_tokens,
        result.tokens.size()
    ));
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
