#include "tests/fuzz/chat_template_support.h"

// The source of a chat template, rendered with a fixed conversation.

using namespace mlxcel;

namespace {

RenderInput fixed_input() {
  RenderInput input(Json::parse(
      R"([{"role": "system", "content": "Be <brief> & \"kind\"."},
          {"role": "user", "content": [{"type": "text", "text": "Köln 😀"},
                                       {"type": "image"}]},
          {"role": "assistant", "content": "", "reasoning_content": "hm",
           "tool_calls": [{"id": "call_1", "type": "function", "function":
             {"name": "f", "arguments": {"x": 1.5, "y": [null, true]}}}]},
          {"role": "tool", "content": "20", "tool_call_id": "call_1"}])",
      "messages"
  ));
  input.tools = Json::parse(
      R"([{"type": "function", "function": {"name": "f", "parameters":
          {"type": "object", "properties": {"x": {"type": "number"}}}}}])",
      "tools"
  );
  input.bos_token = "<s>";
  input.enable_thinking = true;
  input.now = 1'700'000'000;
  input.limits = fuzz::small_limits();
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const RenderInput input = fixed_input();
  std::string source(fuzz::as_text(data, size));
  fuzz::check_rendering(ChatTemplate::from_source(source, "fuzz"), input);
  return 0;
}
