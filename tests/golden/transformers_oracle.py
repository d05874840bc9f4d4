#!/usr/bin/env python3
"""The same cases by transformers and torch: makes the logits of cases whose
oracle is transformers and compares the others.

usage: transformers_oracle.py OUT_DIR

Needs torch and transformers; OUT_DIR gets FAMILY_CASE.npy and .json, which
belong in the case's folder as logits.npy and case.json.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from golden_cases import CASES
from synthetic import synthetic

HERE = Path(__file__).resolve().parent


def tokens_of(count, vocabulary):
    state, out = 1, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        out.append((state >> 8) % vocabulary)
    return out


def tensor(name, shape):
    """Experts have the names of mlx-lm's stacks in the golden checkpoints."""
    root, _, fused = name.partition(".experts.")
    if fused == "gate_up_proj":
        half = (shape[0], shape[1] // 2, shape[2])
        return np.concatenate([
            synthetic(f"{root}.switch_mlp.{kind}_proj.weight", half)
            for kind in ("gate", "up")], axis=1)
    if fused == "down_proj":
        name = root + ".switch_mlp.down_proj.weight"
    return synthetic(name, shape)


def logits(config, tokens):
    model = AutoModelForCausalLM.from_config(
        AutoConfig.for_model(**config), attn_implementation="eager",
        experts_implementation="eager").float()
    state = {}
    for name, value in model.state_dict().items():
        tied = name == "lm_head.weight" and model.config.tie_word_embeddings
        source = "model.embed_tokens.weight" if tied else name
        state[name] = torch.from_numpy(tensor(source, tuple(value.shape)))
    model.load_state_dict(state, strict=True)
    with torch.no_grad():
        return model.eval()(torch.tensor([tokens])).logits[0].numpy()


def main():
    out = Path(sys.argv[1])
    for name, case in CASES.items():
        config = case["config"]
        # transformers has no affine planes and no interleaved rotation here,
        # and takes 8 for a missing number of key heads.
        if (case.get("quantization") or config.get("rope_traditional")
                or "num_key_value_heads" not in config):
            continue
        if config["model_type"] == "gemma":
            # Older releases lack the rule of 5.24's configuration_gemma.py
            # ("gelu" means the tanh form) and none reads hidden_activation.
            if "hidden_activation" in config:
                continue
            config = config | {"hidden_act": "gelu_pytorch_tanh"}
        tokens = tokens_of(case.get("tokens", 40), config["vocab_size"])
        got = logits(config, tokens)
        if case.get("oracle") == "transformers":
            stem = name.replace("/", "_")
            np.save(out / f"{stem}.npy", got.astype("<f4"))
            (out / f"{stem}.json").write_text(json.dumps({
                "oracle": f"transformers {transformers.__version__}",
                "note": case.get("note", ""),
                "tokens": tokens,
                "changes": case["changes"],
                "dead": case.get("dead", []),
            }, indent=1) + "\n")
            print(name, "made", float(np.abs(got).max()))
        else:
            want = np.load(HERE / name / "logits.npy")
            gap = np.abs(got - want).max(1) / np.abs(want).max(1)
            print(name, "differs by", float(gap.max()))


if __name__ == "__main__":
    main()
