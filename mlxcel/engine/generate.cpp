#include "mlxcel/engine/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/core/error.h"
#include "mlxcel/core/os.h"
#include "mlxcel/engine/stop_strings.h"
#include "mlxcel/tokenizer/detokenizer.h"
#include "mlxcel/tokenizer/tokenizer.h"

namespace mlxcel {

namespace {

// Keeps what the sequence shares with the prompt, but computes at least the
// last token: its logits are needed.
std::span<const int32_t> reuse_prefix(
    Sequence& sequence, std::span<const int32_t> prompt
) {
  auto held = sequence.tokens();
  auto shared = static_cast<size_t>(
      std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end())
          .first -
      held.begin()
  );
  shared = std::min(shared, prompt.size() - 1);
  sequence.truncate(static_cast<int64_t>(shared));
  return prompt.subspan(shared);
}

int64_t token_budget(const GenerateParams& params, size_t prompt) {
  int64_t room = params.context - static_cast<int64_t>(prompt);
  return params.max_tokens < 0 ? room : std::min(room, params.max_tokens);
}

void check(
    const GenerateParams& params,
    std::span<const int32_t> prompt,
    int64_t vocabulary
) {
  params.sampler.check();
  for (int32_t id : prompt) {
    if (id < 0 || id >= vocabulary) {
      fail(
          ErrorCode::invalid_input,
          fmt::format(
              "[generate] the prompt has token id {}, the model knows {}: its "
              "tokenizer belongs to another model",
              id,
              vocabulary
          )
      );
    }
  }
  if (prompt.empty()) {
    fail(ErrorCode::invalid_input, "[generate] the prompt is empty");
  }
  if (static_cast<int64_t>(prompt.size()) >= params.context) {
    fail(
        ErrorCode::invalid_input,
        fmt::format(
            "[generate] the prompt has {} tokens, the context holds {} and "
            "needs room for a reply",
            prompt.size(),
            params.context
        )
    );
  }
}

// Chooses tokens from the rows of logits of one sequence.
class Chooser {
 public:
  Chooser(const Engine& engine, const SamplerParams& params)
      : engine_(engine), sampler_(params) {}

  int32_t choose(
      const backend::Tensor& logits, std::span<const int32_t> history
  ) {
    if (sampler_.is_plain_argmax()) {
      int32_t id = 0;
      engine_.model().backend().argmax(logits, {&id, 1});
      return id;
    }
    row_.resize(static_cast<size_t>(logits.cols()));
    engine_.read(logits, row_);
    return sampler_.sample(row_, history);
  }

 private:
  const Engine& engine_;
  Sampler sampler_;
  std::vector<float> row_;
};

// Turns tokens into text that may be shown, up to a stop.
class Reply {
 public:
  Reply(
      const Tokenizer& tokenizer,
      std::span<const int32_t> prompt,
      const GenerateParams& params,
      const std::function<void(std::string_view)>& emit,
      GenerateResult& result
  )
      : params_(params),
        detokenizer_(tokenizer, prompt),
        stops_(params.stop_strings),
        emit_(emit),
        result_(result) {}

  /// False once the reply is complete.
  bool push(int32_t id) {
    result_.tokens.push_back(id);
    const auto& stop_ids = params_.stop_ids;
    bool ends =
        !params_.ignore_stop_ids &&
        std::find(stop_ids.begin(), stop_ids.end(), id) != stop_ids.end();
    if (!ends) {
      put(stops_.push(detokenizer_.push(id)));
    }
    if (ends || stops_.stopped()) {
      result_.reason = FinishReason::stop;
      return false;
    }
    return true;
  }

  void finish() {
    put(stops_.push(detokenizer_.flush()));
    put(stops_.flush());
  }

 private:
  void put(const std::string& text) {
    if (!text.empty()) {
      result_.text += text;
      emit_(text);
    }
  }

  const GenerateParams& params_;
  StreamingDetokenizer detokenizer_;
  StopStrings stops_;
  const std::function<void(std::string_view)>& emit_;
  GenerateResult& result_;
};

bool cancelled(const std::atomic<bool>* cancel) {
  return cancel != nullptr && cancel->load(std::memory_order_relaxed);
}

}  // namespace

double GenerateResult::prompt_speed() const {
  return prompt_seconds > 0
             ? static_cast<double>(prompt_tokens) / prompt_seconds
             : 0;
}

double GenerateResult::decode_speed() const {
  auto steps = static_cast<double>(tokens.size()) - 1;
  return decode_seconds > 0 && steps > 0 ? steps / decode_seconds : 0;
}

GenerateResult generate(
    Engine& engine,
    Sequence& sequence,
    const Tokenizer& tokenizer,
    std::span<const int32_t> prompt,
    const GenerateParams& params,
    const std::function<void(std::string_view)>& emit,
    const std::atomic<bool>* cancel
) {
  check(params, prompt, engine.model().vocabulary());
  GenerateResult result;
  Reply reply(tokenizer, prompt, params, emit, result);
  Chooser chooser(engine, params.sampler);
  int64_t budget = token_budget(params, prompt.size());
  if (budget == 0) {
    return result;
  }
  std::span<const int32_t> fresh = reuse_prefix(sequence, prompt);
  double start = os::now();
  backend::Tensor logits =
      engine.prefill(sequence, fresh, prefill_chunk(), cancel);
  if (cancelled(cancel)) {
    result.reason = FinishReason::cancelled;
    return result;
  }
  std::vector<int32_t> history(prompt.begin(), prompt.end());
  int32_t token = chooser.choose(logits, history);
  double first = os::now();
  result.prompt_tokens = static_cast<int64_t>(fresh.size());
  result.prompt_seconds = first - start;
  while (reply.push(token)) {
    if (static_cast<int64_t>(result.tokens.size()) >= budget) {
      break;
    }
    if (cancelled(cancel)) {
      result.reason = FinishReason::cancelled;
      break;
    }
    history.push_back(token);
    StepInput input{
        &sequence, {&token, 1}, backend::Role::generated, Logits::last};
    logits = engine.step({&input, 1});
    token = chooser.choose(logits, history);
  }
  reply.finish();
  result.decode_seconds = os::now() - first;
  return result;
}

}  // namespace mlxcel
