#!/usr/bin/env python3
"""Makes the golden cases: tiny configs and the logits of the official
implementation, mlx-lm, for weights made from tensor names (synthetic.py).

usage: make_golden.py [FAMILY/CASE ...]      (default: all)

Run with the Python of scripts/oracle_env.sh. Each case is a folder
FAMILY/CASE with config.json, case.json (tokens, oracle, quantisation, changes
that must show, dead keys) and logits.npy, float32 [T, V].
"""

import copy
import importlib
import importlib.metadata
import json
import sys
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes

from golden_cases import CASES
from synthetic import synthetic

HERE = Path(__file__).resolve().parent


def tokens_of(count, vocabulary):
    state, out = 1, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        out.append((state >> 8) % vocabulary)
    return out


def build(config, quantization):
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    weights = [(name, mx.array(synthetic(name, value.shape)))
               for name, value in tree_flatten(model.parameters())
               if "rope" not in name]
    model.load_weights(weights, strict=True)
    if quantization:
        nn.quantize(
            model, quantization["group_size"], quantization["bits"],
            mode=quantization.get("mode", "affine"),
            class_predicate=lambda _, module: hasattr(module, "to_quantized")
            and module.weight.shape[-1] % quantization["group_size"] == 0)
    model.eval()
    return model


def official_gelu(config):
    """mlx-lm's Gemma always takes the exact GELU; the official one takes the
    tanh form unless `hidden_activation` asks for the other."""
    if config["model_type"] != "gemma" or config.get("hidden_activation") == "gelu":
        return
    module = importlib.import_module("mlx_lm.models.gemma")
    class Functions:
        def __getattr__(self, name):
            return nn.gelu_approx if name == "gelu" else getattr(nn, name)
    module.nn = Functions()


def restore_gelu():
    importlib.import_module("mlx_lm.models.gemma").nn = nn


def make(path, case):
    config, quantization = case["config"], case.get("quantization")
    tokens = tokens_of(case.get("tokens", 40), config["vocab_size"])
    official_gelu(config)
    model = build(copy.deepcopy(config), quantization)
    with mx.stream(mx.cpu):
        logits = np.array(model(mx.array([tokens]))[0].astype(mx.float32))
    restore_gelu()
    path.mkdir(parents=True, exist_ok=True)
    stored = dict(config)
    if quantization:
        stored["quantization"] = quantization
    (path / "config.json").write_text(json.dumps(stored, indent=2) + "\n")
    (path / "case.json").write_text(json.dumps({
        "oracle": "mlx-lm " + importlib.metadata.version("mlx-lm"),
        "note": case.get("note", ""),
        "tokens": tokens,
        "changes": case["changes"],
        "dead": case.get("dead", []),
        **({"int8_bound": case["int8_bound"]} if "int8_bound" in case else {}),
    }, indent=1) + "\n")
    np.save(path / "logits.npy", logits.astype("<f4"))
    print(path.relative_to(HERE), logits.shape, float(np.abs(logits).max()))


def main():
    mx.set_default_device(mx.cpu)
    wanted = sys.argv[1:]
    for name, case in CASES.items():
        if case.get("oracle", "mlx-lm") != "mlx-lm":
            continue  # transformers_oracle.py
        if not wanted or name in wanted:
            make(HERE / name, case)


if __name__ == "__main__":
    main()
