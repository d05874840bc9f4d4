#pragma once

#include <cstdint>
#include <string_view>

#include "mlxcel/loading/model_type.h"

namespace mlxcel::kv {

/// How a row's layers keep what they need of the past.
enum class Kind : uint8_t {
  none,             // nothing grows with the context
  unknown,          // not described here
  attention,        // every layer keeps keys and values
  latent,           // kv_lora_rank + qk_rope_head_dim values (MLA)
  jamba,            // attn_layer_period, attn_layer_offset
  interval,         // layer_types, or every full_attention_interval-th layer
  layer_types,      // layer_types name the layers that attend
  nemotron_h,       // '*' of hybrid_override_pattern
  griffin,          // block_types repeat; attention slides
  group_of_linear,  // the last of every layer_group_size layers
  kimi_linear,      // latent in linear_attn_config.full_attn_layers
  attention_list,   // attn_type_list: 1 attends
  gemma4,           // global layers with heads of their own; shared tail
  shared_tail,      // the last num_kv_shared_layers keep nothing
  mimo_flash,       // hybrid_layer_pattern: 1 slides with other heads
  per_layer_heads,  // num_kv_heads is a list
  nas,              // block_configs
  cross_layer,      // use_cla: one of every cla_share_factor layers
  plamo2,           // the middle of every mamba_step layers attends
  step3p5,          // sliding layers by attention_other_setting
  baichuan,         // sliding_window_layers, with heads of their own
  whisper,          // decoder with cross attention
};

/// Which layers slide where the config lists no `layer_types`.
enum class Windows : uint8_t {
  never,      // none, whatever is listed
  listed,     // only where layer_types says so
  all,        // all, if there is a sliding_window
  opt_in,     // use_sliding_window, from max_window_layers on
  alternate,  // even ones
  every,      // all but each sliding_window_pattern-th
  chunks,     // those with rotary embedding, by attention_chunk_size
};

struct Rule {
  Kind kind = Kind::unknown;
  Windows windows = Windows::listed;
  std::string_view note;  // of `none` and `unknown`
  int64_t head_dim = 0;   // where the config has none; 0: hidden / heads
  int64_t period = 0;     // default of sliding_window_pattern
  int64_t default_window = 0;
  bool multi_query = false;  // one kv head unless multi_query is false
  int64_t caches_per_layer = 1;
};

/// Sources: the configuration and cache classes of transformers 5 and the
/// make_cache() methods of mlx-lm 0.32.
Rule rule_of(ModelType type);

}  // namespace mlxcel::kv
