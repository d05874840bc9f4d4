#!/usr/bin/env python3
"""Size, speed and perplexity of one model in every format.

    formats.py MODEL TEXT [--program FILE] [--rounds N] [--threads N]

MODEL is converted to each format in turn (`mlxcel convert`), then all are
measured in rounds, one after another, so that each meets the machine's moods;
perplexity is that of TEXT in the default mode and in the exact one. Prints a
table for docs/quantization.md.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORMATS = {
    "bf16": ["--dequantize", "--dtype", "bfloat16"],
    **{f"affine {bits}-bit, group {group}":
       ["--q-bits", str(bits), "--q-group-size", str(group)]
       for bits, group in [(8, 64), (6, 64), (5, 64), (4, 32), (4, 64),
                           (4, 128), (3, 64), (2, 32)]},
    "mxfp8": ["--q-mode", "mxfp8"],
    "mxfp4": ["--q-mode", "mxfp4"],
    "nvfp4": ["--q-mode", "nvfp4"],
    "mixed_4_6": ["--quant-predicate", "mixed_4_6"],
}


def run(*command):
    done = subprocess.run([str(part) for part in command],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    return done.stdout


def perplexity(program, model, text, *options):
    told = json.loads(run(program, "score", "-m", model, "--file", text, "--json",
                          *options))
    return told["perplexity"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--program", type=Path,
                        default=ROOT / "build/release/mlxcel")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = {"as it is": options.model}
        for name, flags in FORMATS.items():
            models[name] = Path(folder) / name.replace(" ", "_")
            run(options.program, "convert", options.model, models[name],
                *flags)
        prefill = {name: [] for name in models}
        decode = {name: [] for name in models}
        for _ in range(options.rounds):
            for name, model in models.items():
                told = json.loads(run(options.program, "bench", model, "-p",
                                      "512", "-n", "64", "-r", "1", "--json"))
                prefill[name] += told["prefill_tok_s"]
                decode[name] += told["decode_tok_s"]
        print("| format | MB | prefill tok/s | decode tok/s | perplexity "
              "| exact mode |\n|---|---|---|---|---|---|")
        for name, model in models.items():
            size = sum(file.stat().st_size
                       for file in model.glob("*.safetensors"))
            print(f"| {name} | {size / 1e6:.0f} "
                  f"| {statistics.median(prefill[name]):.0f} "
                  f"| {statistics.median(decode[name]):.0f} "
                  f"| {perplexity(options.program, model, options.text, '--no-exact'):.2f} "
                  f"| {perplexity(options.program, model, options.text, '--exact'):.2f} |")


if __name__ == "__main__":
    main()
