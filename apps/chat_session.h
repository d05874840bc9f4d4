#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/options.h"
#include "apps/preflight.h"
#include "mlxcel/chat/conversation.h"
#include "mlxcel/chat/template.h"
#include "mlxcel/engine/generate.h"

namespace mlxcel::apps {

/// A loaded model with one sequence: what `generate` and `run` talk to.
class ChatSession {
 public:
  /// `directory`: that of the model. `first`: the conversation of the first
  /// turn, if it is known: the memory check then counts its tokens. Throws what
  /// loading throws, and what Preflight::judge() does.
  ChatSession(
      const std::string& directory,
      const ModelOptions& model,
      const SamplingOptions& sampling,
      bool use_template,
      const Preflight& preflight,
      const std::vector<ChatMessage>& first = {}
  );

  /// Tokens of the conversation, ready for a reply.
  std::vector<int32_t> prompt(const std::vector<ChatMessage>& conversation
  ) const;

  /// One reply to the conversation; an interrupt ends it early. What the
  /// sequence shares with the last turn is not computed again.
  GenerateResult reply(
      const std::vector<ChatMessage>& conversation,
      const std::function<void(std::string_view)>& emit
  );

  const Checkpoint& checkpoint() const {
    return checkpoint_;
  }
  /// Whether a template was asked for and there is none.
  bool lacks_template() const {
    return use_template_ && !template_;
  }
  const GenerateParams& params() const {
    return params_;
  }
  /// What was estimated before loading; empty unless it was asked for.
  const std::optional<MemoryEstimate>& estimate() const {
    return estimate_;
  }

 private:
  std::optional<MemoryEstimate> estimate_;
  Checkpoint checkpoint_;
  std::optional<ChatTemplate> template_;
  bool use_template_;
  GenerateParams params_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Sequence> sequence_;
};

/// A conversation that has only a system message, or none if it is empty.
std::vector<ChatMessage> opening(const std::string& system);

/// What came before the first token, on one line: model, device, load time.
std::string describe_load(const ChatSession& session);
/// "[Generated 12 tokens in 0.10s = 120.00 tok/s; prompt ...]".
std::string describe_speed(const GenerateResult& result);

}  // namespace mlxcel::apps
