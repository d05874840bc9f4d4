#pragma once

#include <string>

#include "mlxcel/core/json.h"

namespace mlxcel {

/// Values that must stop a load, because the model would run and answer
/// wrongly. Each throws Error naming key and value.

/// IQuest-Coder on the Llama decoder: no `clip_qkv`, no live sliding window.
/// detection-and-routing.md 3.8.
void guard_iquest(const Json& config);
/// IQuest-Coder Loop: `loop_num` 2 or absent.
void guard_iquest_loop(const Json& config);
/// Qwen 3.5: `output_gate_type`, `rope_parameters.mrope_interleaved`, and
/// with a tower `language_model_only`. detection-and-routing.md 3.9.
void guard_qwen3_5(const Json& config);
/// Text models that LLaVA is built on. detection-and-routing.md 3.7.
void guard_llava(const Json& config);
/// XLM-RoBERTa with rotary positions is another model (Jina v3).
void guard_xlm_roberta(const Json& config);
/// A directory with the prediction heads of Inkling alone is a drafter.
/// detection-and-routing.md 3.10.
void guard_inkling(const std::string& directory, const Json& config);

}  // namespace mlxcel
