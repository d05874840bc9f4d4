#!/usr/bin/env python3
"""Writes data/smollm2_reference.json: what mlx-lm makes of the converted
SmolLM2-135M-Instruct in float32, on the CPU.

    make_smollm2_reference.py MODEL_DIR

For each prompt of data/smollm2_prompts.json its ids by the official template
and tokenizer, the greedy ids, and the positions where the two best
logarithms of probabilities lie closer than 1e-3. For data/perplexity_text.txt
its ids and the log-probabilities of the first ones. Takes ten minutes; answers
that are there already for the same weights and versions are kept.
"""

import argparse
import hashlib
import importlib.metadata
import json
from pathlib import Path

import mlx.core as mx
import mlx_lm
import numpy as np
from mlx_lm.generate import generate_step

DATA = Path(__file__).resolve().parent / "data"
MAX_TOKENS = 64
CLOSE = 1e-3
SCORED = 300
VERSIONS = ["mlx", "mlx-lm", "transformers", "tokenizers"]


def load(directory):
    mx.set_default_device(mx.cpu)
    model, tokenizer = mlx_lm.load(str(directory))
    model.set_dtype(mx.float32)
    return model, tokenizer


def greedy(model, tokenizer, prompt):
    """Ids up to and with the end of the text, and the close calls."""
    ids, close = [], {}
    for token, scores in generate_step(
            mx.array(prompt), model, max_tokens=MAX_TOKENS):
        best = mx.sort(scores)[-2:].tolist()
        if best[1] - best[0] < CLOSE:
            close[len(ids)] = best[1] - best[0]
        ids.append(int(token))
        if ids[-1] in tokenizer.eos_token_ids:
            break
    return ids, close


def answer(model, tokenizer, case):
    prompt = tokenizer.apply_chat_template(
        case["messages"], add_generation_prompt=True, tokenize=True,
        return_dict=False)
    ids, close = greedy(model, tokenizer, prompt)
    return {"name": case["name"], "prompt": prompt, "ids": ids,
            "close": close}


def score(model, ids):
    """Log-probabilities of ids[1:] given what precedes. The sum over the
    vocabulary is taken in double precision: in single precision the many
    small terms are lost beside the large one, 1e-4 of it in all."""
    logits = np.array(model(mx.array([ids]))[0]).astype(np.float64)
    best = logits.max(axis=-1)
    norm = best + np.log(np.exp(logits - best[:, None]).sum(axis=-1))
    return [logits[i, ids[i + 1]] - norm[i] for i in range(len(ids) - 1)]


def prompts(only=None):
    cases = json.loads((DATA / "smollm2_prompts.json").read_text())
    return [case for case in cases if only in (None, case["name"])]


def stamp(directory):
    weights = (Path(directory) / "model.safetensors").read_bytes()
    return {"versions": {name: importlib.metadata.version(name)
                         for name in VERSIONS},
            "weights_sha256": hashlib.sha256(weights).hexdigest()}


def write(path, reference):
    lines = json.dumps(reference)
    lines = lines.replace('{"name"', '\n{"name"').replace('"text"', '\n"text"')
    path.write_text(lines + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    options = parser.parse_args()
    path = DATA / "smollm2_reference.json"
    reference = stamp(options.model)
    known = json.loads(path.read_text()) if path.exists() else {}
    if any(known.get(key) != value for key, value in reference.items()):
        known = {}
    model, tokenizer = load(options.model)
    answers = {answer["name"]: answer for answer in known.get("answers", [])}
    reference["answers"] = []
    for case in prompts():
        reference["answers"].append(
            answers.get(case["name"]) or answer(model, tokenizer, case))
        write(path, {**known, **reference})
    text = (DATA / "perplexity_text.txt").read_text()
    ids = tokenizer.encode(text)
    reference["text"] = {"ids": ids, "logprobs": score(model, ids[:SCORED])}
    write(path, reference)


if __name__ == "__main__":
    main()
