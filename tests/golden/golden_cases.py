"""Configs of the golden cases. `changes` gives another value for every key
that the family reads; each must move the logits or stop the load. Keys that
are read by others only are `dead` for the logits."""

DEAD = ["model_type", "max_position_embeddings"]

DIMENSIONS = {
    "hidden_size": 52, "num_hidden_layers": 2, "num_attention_heads": 1,
    "num_key_value_heads": 1, "intermediate_size": 60, "vocab_size": 90,
}
COMMON = DIMENSIONS | {"rms_norm_eps": 0.5, "rope_theta": 10.0}


def base(model_type, **extra):
    config = {
        "model_type": model_type, "hidden_size": 48, "num_hidden_layers": 3,
        "num_attention_heads": 6, "num_key_value_heads": 2,
        "intermediate_size": 80, "rms_norm_eps": 1e-5, "vocab_size": 97,
        "rope_theta": 10000.0, "max_position_embeddings": 512,
        "tie_word_embeddings": False,
    }
    config.update(extra)
    return config


def moe(**extra):
    return base("qwen3_moe", **{
        "num_experts": 6, "num_experts_per_tok": 2,
        "moe_intermediate_size": 24, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "norm_topk_prob": False, "head_dim": 16,
        **extra})


NEAR_TIE = ("a few tokens have two experts with nearly the same score: which "
            "one is chosen turns on the rounding of activations")
MOE_CHANGES = {
    "num_experts": 3, "num_experts_per_tok": 1, "moe_intermediate_size": 20,
    "decoder_sparse_step": 2, "mlp_only_layers": [0], "head_dim": 12,
}


def case(config, changes=None, **extra):
    """Every key of the config that isn't dead needs a change."""
    dead = DEAD + extra.pop("dead", [])
    all_changes = COMMON | {
        "tie_word_embeddings": not config["tie_word_embeddings"],
        "num_key_value_heads": 2 if config.get("num_key_value_heads") == 1 else 1,
    } | (MOE_CHANGES | {
        "norm_topk_prob": not config["norm_topk_prob"],
        "num_experts_per_tok": 2 if config["num_experts_per_tok"] == 1 else 1,
    } if "num_experts" in config else {}) | (changes or {})
    changes = {key: value for key, value in all_changes.items()
               if key in config and key not in dead}
    missing = set(config) - set(changes) - set(dead)
    assert not missing, missing
    return {"config": config, "changes": changes,
            "dead": [key for key in dead if key in config], **extra}


CASES = {
    # Llama
    "llama/plain": case(base("llama")),
    "llama/head_dim_biases_llama3": case(
        base("llama", hidden_size=36, num_attention_heads=3,
             num_key_value_heads=1, head_dim=10, attention_bias=True,
             mlp_bias=True, rope_theta=500000.0,
             rope_scaling={"rope_type": "llama3", "factor": 8.0,
                           "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 24}),
        {"head_dim": 12, "attention_bias": False, "mlp_bias": False,
         "rope_scaling": None}),
    "llama/tied_interleaved_linear": case(
        base("llama", tie_word_embeddings=True, rope_traditional=True,
             num_key_value_heads=6,
             rope_scaling={"type": "linear", "factor": 2.5}),
        {"rope_traditional": False, "rope_scaling": None}),
    "llama/sliding_layers": case(
        base("llama", layer_types=["full_attention", "sliding_attention",
                                   "sliding_attention"], sliding_window=7),
        {"layer_types": ["full_attention"] * 3, "sliding_window": 3}),
    "llama/yarn": case(
        base("llama", num_attention_heads=3, num_key_value_heads=3,
             rope_scaling={"rope_type": "yarn", "factor": 4.0,
                           "original_max_position_embeddings": 32}),
        {"rope_scaling": None}),
    "llama/affine4_group32": case(
        base("llama", hidden_size=64, num_attention_heads=4, head_dim=16,
             intermediate_size=96),
        {"head_dim": 8},
        quantization={"group_size": 32, "bits": 4}),
    "llama/affine3_group64_tied": case(
        base("llama", hidden_size=64, num_attention_heads=4, head_dim=16,
             intermediate_size=128, tie_word_embeddings=True),
        {"head_dim": 8},
        quantization={"group_size": 64, "bits": 3}),
    "llama/affine4_group128": case(
        base("llama", hidden_size=128, num_attention_heads=4, head_dim=32,
             num_hidden_layers=2, intermediate_size=256),
        {"head_dim": 16, "num_hidden_layers": 1},
        quantization={"group_size": 128, "bits": 4}),
    "llama/mxfp4_tied": case(
        base("llama", hidden_size=64, num_attention_heads=4, head_dim=16,
             intermediate_size=96, tie_word_embeddings=True),
        {"head_dim": 8},
        quantization={"group_size": 32, "bits": 4, "mode": "mxfp4"}),
    "llama/affine8_mixed_dense": case(
        # 80 columns are no multiple of 32: down_proj stays dense.
        base("llama", hidden_size=96, num_attention_heads=6),
        quantization={"group_size": 32, "bits": 8}),

    # Mistral
    "mistral/plain": case(base("mistral", num_key_value_heads=3)),
    "mistral/no_kv_heads": case(
        {key: value for key, value in base(
            "mistral", rope_theta=1000000.0, rms_norm_eps=1e-6,
            sliding_window=None).items() if key != "num_key_value_heads"},
        {"sliding_window": 4}),
    "mistral/wide_head": case(
        base("mistral", hidden_size=40, num_attention_heads=2,
             num_key_value_heads=1, head_dim=24, vocab_size=65,
             num_hidden_layers=1, tie_word_embeddings=True,
             sliding_window=4096),
        {"head_dim": 16, "num_hidden_layers": 2, "vocab_size": 60,
         "sliding_window": 6}),
    "mistral/affine2_group32": case(
        base("mistral", hidden_size=64, num_attention_heads=2,
             num_key_value_heads=1, intermediate_size=160),
        quantization={"group_size": 32, "bits": 2}),

    "mistral/sliding_window": case(
        base("mistral", sliding_window=7, head_dim=8),
        {"sliding_window": 12, "head_dim": 4}, oracle="transformers",
        note="mlx-lm ignores sliding_window without layer_types"),

    # Qwen 2
    "qwen2/plain": case(base("qwen2", rms_norm_eps=1e-6)),
    "qwen2/tied_linear": case(
        base("qwen2", tie_word_embeddings=True, num_attention_heads=4,
             num_key_value_heads=4, rope_theta=1000000.0,
             use_sliding_window=False, sliding_window=8,
             max_window_layers=1,
             rope_scaling={"type": "linear", "factor": 3.0}),
        {"rope_scaling": None, "use_sliding_window": True},
        dead=["sliding_window", "max_window_layers"]),
    "qwen2/one_head": case(
        base("qwen2", hidden_size=30, num_attention_heads=1,
             num_key_value_heads=1, intermediate_size=33, vocab_size=61,
             num_hidden_layers=2),
        {"num_hidden_layers": 1, "num_attention_heads": 3,
         "num_key_value_heads": 2, "vocab_size": 60}),
    "qwen2/affine5_group32": case(
        base("qwen2", hidden_size=64, num_attention_heads=4,
             intermediate_size=96),
        quantization={"group_size": 32, "bits": 5}),

    "qwen2/sliding_upper_layers": case(
        base("qwen2", use_sliding_window=True, sliding_window=5,
             max_window_layers=1),
        {"use_sliding_window": False, "sliding_window": 9,
         "max_window_layers": 3}, oracle="transformers",
        note="mlx-lm ignores use_sliding_window"),

    # Qwen 3
    "qwen3/plain": case(
        base("qwen3", head_dim=16), {"head_dim": 8}),
    "qwen3/wide_heads_tied": case(
        base("qwen3", hidden_size=40, num_attention_heads=5,
             num_key_value_heads=1, head_dim=20, tie_word_embeddings=True,
             rms_norm_eps=1e-6, rope_theta=1000000.0),
        {"head_dim": 8}),
    "qwen3/rope_parameters": case(
        {key: value for key, value in base(
            "qwen3", head_dim=8,
            rope_parameters={"rope_type": "yarn", "rope_theta": 5000.0,
                             "factor": 2.0,
                             "original_max_position_embeddings": 48},
        ).items() if key != "rope_theta"},
        {"head_dim": 16, "rope_parameters": {"rope_theta": 20.0}}),
    "qwen3/affine6_group64": case(
        base("qwen3", hidden_size=64, num_attention_heads=4, head_dim=32,
             intermediate_size=192),
        {"head_dim": 16},
        quantization={"group_size": 64, "bits": 6}),

    "qwen3/mxfp8": case(
        base("qwen3", hidden_size=64, num_attention_heads=4, head_dim=32,
             intermediate_size=192),
        {"head_dim": 16},
        quantization={"group_size": 32, "bits": 8, "mode": "mxfp8"}),
    "qwen3/nvfp4": case(
        base("qwen3", hidden_size=64, num_attention_heads=4, head_dim=32,
             intermediate_size=160),
        {"head_dim": 16},
        quantization={"group_size": 16, "bits": 4, "mode": "nvfp4"}),
    "qwen3/affine8_group128": case(
        base("qwen3", hidden_size=128, num_attention_heads=2, head_dim=64,
             num_hidden_layers=2, num_key_value_heads=1,
             intermediate_size=128),
        {"head_dim": 32, "num_hidden_layers": 1},
        quantization={"group_size": 128, "bits": 8}),

    "qwen3/attention_bias": case(
        base("qwen3", head_dim=8, attention_bias=True),
        {"head_dim": 16, "attention_bias": False}, oracle="transformers",
        note="mlx-lm ignores attention_bias"),

    # Qwen 3 with experts
    "qwen3_moe/plain": case(
        moe(head_dim=16, norm_topk_prob=True), dead=["intermediate_size"]),
    "qwen3_moe/one_expert_tied": case(
        moe(hidden_size=40, num_attention_heads=5, num_key_value_heads=1,
            head_dim=20, num_experts=5, num_experts_per_tok=1,
            moe_intermediate_size=17, tie_word_embeddings=True),
        {"head_dim": 8}, dead=["intermediate_size"]),
    "qwen3_moe/every_expert": case(
        moe(num_experts=4, num_experts_per_tok=4, head_dim=8),
        # Weights that sum to 1 already.
        dead=["intermediate_size", "norm_topk_prob"]),
    "qwen3_moe/some_layers": case(
        moe(num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[3],
            head_dim=8, norm_topk_prob=True),
        {"num_hidden_layers": 3, "decoder_sparse_step": 1,
         "mlp_only_layers": []}),
    "qwen3_moe/affine4_group32": case(
        moe(hidden_size=64, num_attention_heads=4, head_dim=32,
            moe_intermediate_size=96, norm_topk_prob=True),
        {"head_dim": 16}, dead=["intermediate_size"],
        quantization={"group_size": 32, "bits": 4}),
    "qwen3_moe/affine6_group64": case(
        moe(hidden_size=64, num_attention_heads=4, head_dim=32,
            num_experts=9, num_experts_per_tok=3, moe_intermediate_size=64),
        {"head_dim": 16, "num_experts_per_tok": 2},
        dead=["intermediate_size"],
        quantization={"group_size": 64, "bits": 6}),
    "qwen3_moe/mxfp4": case(
        moe(hidden_size=64, num_attention_heads=4, head_dim=32,
            moe_intermediate_size=96, norm_topk_prob=True),
        {"head_dim": 16}, dead=["intermediate_size"], int8_bound=0.25,
        note=NEAR_TIE,
        quantization={"group_size": 32, "bits": 4, "mode": "mxfp4"}),
    "qwen3_moe/mxfp8": case(
        moe(hidden_size=64, num_attention_heads=4, head_dim=32,
            moe_intermediate_size=96),
        {"head_dim": 16}, dead=["intermediate_size"],
        quantization={"group_size": 32, "bits": 8, "mode": "mxfp8"}),
    "qwen3_moe/nvfp4": case(
        moe(hidden_size=64, num_attention_heads=4, head_dim=32,
            moe_intermediate_size=48, norm_topk_prob=True),
        {"head_dim": 16}, dead=["intermediate_size"], int8_bound=0.25,
        note=NEAR_TIE,
        quantization={"group_size": 16, "bits": 4, "mode": "nvfp4"}),

    "qwen3_moe/biases_sliding": case(
        moe(attention_bias=True, use_sliding_window=True, sliding_window=6,
            norm_topk_prob=True),
        {"attention_bias": False, "use_sliding_window": False,
         "sliding_window": 9}, dead=["intermediate_size"],
        oracle="transformers",
        note="mlx-lm ignores attention_bias and use_sliding_window"),

    # Gemma
    "gemma/gelu": case(
        base("gemma", head_dim=12, num_key_value_heads=1,
             hidden_activation="gelu", tie_word_embeddings=True),
        {"head_dim": 16, "hidden_activation": "relu"},
        dead=["tie_word_embeddings"],
        note="hidden_activation asks for the exact GELU"),
    "gemma/tanh_gelu": case(
        base("gemma", hidden_size=32, num_attention_heads=4, head_dim=16,
             hidden_act="gelu", rms_norm_eps=1e-6, vocab_size=71,
             tie_word_embeddings=True),
        {"head_dim": 8, "hidden_act": "relu", "vocab_size": 70},
        dead=["tie_word_embeddings"],
        note="hidden_act gelu means the tanh form in the official "
             "implementation; mlx-lm patched to it"),
    "gemma/interleaved_wide": case(
        base("gemma", hidden_size=20, num_attention_heads=2,
             num_key_value_heads=2, head_dim=30, rope_traditional=True,
             hidden_activation="gelu", rope_theta=500.0,
             tie_word_embeddings=True),
        {"head_dim": 16, "rope_traditional": False,
         "hidden_activation": "silu"},
        dead=["tie_word_embeddings"]),
    "gemma/affine4_group64": case(
        base("gemma", hidden_size=64, num_attention_heads=2,
             num_key_value_heads=1, head_dim=32, intermediate_size=128,
             hidden_activation="gelu", tie_word_embeddings=True),
        {"head_dim": 16, "hidden_activation": "relu"},
        dead=["tie_word_embeddings"],
        quantization={"group_size": 64, "bits": 4}),
}
