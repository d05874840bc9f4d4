#!/usr/bin/env python3
"""Measures mlxcel and its peers side by side.

All contenders of a case run in turn (A B C A B C ...), each with the same
prompt length, generated length and threads, because the speed of a shared
machine drifts: a ratio is the median of the ratios within rounds. Prints a
table per case and thread count and writes bench/results/NAME.json with every
sample. `make bench` prepares what is needed; see bench/README.md.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import contenders
import table

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / ".deps" / "models"
SMOLLM2 = MODELS / "SmolLM2-135M-Instruct"
SMOLLM2_Q4_1 = MODELS / "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_Q4_0 = MODELS / "SmolLM2-135M-Instruct.Q4_0.gguf"
QWEN3_CONFIG = ROOT / "bench" / "configs" / "qwen3-0.6b.json"
QWEN3 = MODELS / "qwen3-0.6b-synth-4bit-g64"
QWEN3_Q4_0 = MODELS / "qwen3-0.6b-synth.Q4_0.gguf"
MIXED_TEXT = MODELS / "mixed-text-10mb.txt"


class Tools:
    """Where the programs are."""

    def __init__(self, build_dir):
        peers = Path(os.environ.get("MLXCEL_PEERS_DIR",
                                    Path.home() / ".cache/mlxcel-peers"))
        llama_cpp = peers / "llama.cpp-0.3.36" / "bin"
        build_dir = Path(build_dir).resolve()
        self.mlxcel = build_dir / "mlxcel"
        self.tokenizer_bench = build_dir / "mlxcel_tokenizer_bench"
        self.oracle_python = ROOT / ".venv-oracle" / "bin" / "python"
        self.vocabularies = peers / "vocabularies-0.3.36"
        self.llama_bench = llama_cpp / "llama-bench"
        self.llama_quantize = llama_cpp / "llama-quantize"
        self.mlx_lm_python = peers / "mlx-lm-0.32.2" / "bin" / "python"

    def check(self):
        for path in vars(self).values():
            if not path.exists():
                sys.exit(f"[bench] {path} is missing: run make bench")


def make(path, command):
    """Runs a command that writes path + .new, once."""
    if path.exists():
        return
    new = Path(str(path) + ".new")
    print(f"[bench] making {path.relative_to(ROOT)}", flush=True)
    done = subprocess.run([str(part) for part in command(new)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"[bench] {done.args}\n{done.stdout}{done.stderr}")
    new.rename(path)


def smollm2_case(tools):
    make(SMOLLM2_Q4_0, lambda new: [
        tools.llama_quantize, "--allow-requantize", SMOLLM2_Q4_1, new, "Q4_0"])
    return {
        "title": "SmolLM2-135M-Instruct",
        "prompt": 512, "generate": 64, "rounds": None, "threads": None,
        "contenders": [
            contenders.Mlxcel("mlxcel 4-bit g32", tools.mlxcel, SMOLLM2),
            contenders.LlamaCpp("llama.cpp Q4_1", tools.llama_bench,
                                SMOLLM2_Q4_1),
            contenders.LlamaCpp("llama.cpp Q4_0", tools.llama_bench,
                                SMOLLM2_Q4_0),
        ],
    }


def qwen3_case(tools):
    make(QWEN3, lambda new: [
        tools.mlxcel, "synth", QWEN3_CONFIG, new,
        "--bits", "4", "--group-size", "64"])
    make(QWEN3_Q4_0, lambda new: [
        tools.mlx_lm_python, ROOT / "bench/peers/synth_gguf.py",
        QWEN3_CONFIG, new])
    return {
        "title": "Qwen3-0.6B, random weights",
        "prompt": 512, "generate": 64, "rounds": None, "threads": None,
        "contenders": [
            contenders.Mlxcel("mlxcel 4-bit g64", tools.mlxcel, QWEN3),
            contenders.LlamaCpp("llama.cpp Q4_0", tools.llama_bench,
                                QWEN3_Q4_0),
        ],
    }


def mlx_lm_case(tools):
    """mlx-lm is some thirty times slower on a CPU, so it gets less to do; it
    has no choice of threads."""
    return {
        "title": "SmolLM2-135M-Instruct, against mlx-lm (short budget)",
        "prompt": 64, "generate": 16, "rounds": 2, "threads": [2],
        "contenders": [
            contenders.Mlxcel("mlxcel 4-bit g32", tools.mlxcel, SMOLLM2),
            contenders.MlxLm("mlx-lm", tools.mlx_lm_python, SMOLLM2),
        ],
    }


def start_case(tools):
    return {
        "title": "SmolLM2-135M-Instruct, process start to first token",
        "prompt": None, "generate": 8, "rounds": None, "threads": [2],
        "contenders": [
            contenders.FirstToken("mlxcel generate", tools.mlxcel, SMOLLM2)],
    }


def tokenizer_case(title, vocabulary):
    def case(tools):
        model = MODELS / f"tokenizer-{vocabulary}"
        make(model, lambda new: [
            tools.mlxcel, "convert", "--tokenizer-only",
            tools.vocabularies / f"ggml-vocab-{vocabulary}.gguf", new])
        make(MIXED_TEXT, lambda new: [
            sys.executable, ROOT / "bench" / "mixed_text.py", new])
        wheel = ROOT / "bench" / "peers" / "tokenizers_wheel.py"
        return {
            "title": f"{title} tokenizer, 10 MB of mixed text",
            "prompt": None, "generate": None, "rounds": None, "threads": [1],
            "contenders": [
                contenders.Tokenizer("mlxcel", [tools.tokenizer_bench],
                                     model, MIXED_TEXT),
                contenders.Tokenizer("tokenizers wheel",
                                     [tools.oracle_python, wheel],
                                     model, MIXED_TEXT)],
        }
    return case


CASES = {
    "smollm2": smollm2_case,
    "qwen3-0.6b": qwen3_case,
    "mlx-lm": mlx_lm_case,
    "start": start_case,
    "tokenizer-llama3": tokenizer_case("Llama 3's", "llama-bpe"),
    "tokenizer-qwen2": tokenizer_case("Qwen2's", "qwen2"),
    "tokenizer-gemma4": tokenizer_case("Gemma 4's", "gemma-4"),
}


def measure(case, threads, rounds):
    """Returns {contender: [sample of round 1, ...]}, run alternately. The
    first round warms the page cache and is thrown away."""
    samples = {contender.name: [] for contender in case["contenders"]}
    for number in range(rounds + 1):
        for contender in case["contenders"]:
            sample = contender.run(case["prompt"], case["generate"], threads)
            if number:
                samples[contender.name].append(sample)
        print(f"[bench] {case['title']}, {threads} threads: "
              f"round {number} of {rounds}", file=sys.stderr, flush=True)
    return samples


def run_case(case, options):
    results = []
    for threads in case["threads"] or options.threads:
        rounds = case["rounds"] or options.rounds
        samples = measure(case, threads, min(rounds, options.rounds))
        results.append({
            "title": case["title"], "prompt": case["prompt"],
            "generate": case["generate"], "threads": threads,
            "samples": samples})
        print(table.render(results[-1]), flush=True)
    return results


def cpu_model():
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    match = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    flags = set(re.search(r"^flags\s*:\s*(.*)$", text, re.MULTILINE)
                .group(1).split())
    known = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8")
    return {"model": match.group(1) if match else platform.processor(),
            "cores": os.cpu_count(),
            "instruction_sets": [name for name in known if name in flags]}


def versions(tools):
    version = subprocess.run([tools.mlxcel, "--version"], text=True,
                             capture_output=True, check=True).stdout.strip()
    return {"mlxcel": version, "llama.cpp": "llama-cpp-python 0.3.36",
            "mlx-lm": "0.32.2"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--cases", default=",".join(CASES),
                        help="comma-separated, of: " + ", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="2,1",
                        help="comma-separated thread counts")
    parser.add_argument("--name", default="bench",
                        help="of the file in bench/results/")
    options = parser.parse_args()
    options.threads = [int(part) for part in options.threads.split(",")]
    names = options.cases.split(",")
    for name in names:
        if name not in CASES:
            parser.error(f"unknown case {name}")

    tools = Tools(options.build)
    tools.check()
    record = {
        "date": datetime.date.today().isoformat(),
        "command": " ".join(sys.argv), "machine": cpu_model(),
        "versions": versions(tools), "results": []}
    print(f"{record['machine']['model']}, {record['machine']['cores']} cores, "
          f"{' '.join(record['machine']['instruction_sets'])}")
    for name in names:
        record["results"] += run_case(CASES[name](tools), options)

    out = ROOT / "bench" / "results" / f"{options.name}.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    busy = [sample["other_cpu"] for result in record["results"]
            for samples in result["samples"].values() for sample in samples]
    if median(busy) > 0.05:
        print(f"[bench] warning: other processes used {median(busy):.0%} of "
              "the processors meanwhile (median): measure again when idle")
    print(f"[bench] samples in {out.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
