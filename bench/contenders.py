"""The programs that bench/run.py measures.

Each contender's run(prompt, generate, threads) starts the program once and
returns one sample: a dictionary with prefill_tok_s and decode_tok_s (medians
of what the program repeated), peak_rss_mb, other_cpu (the share of the
processors that other processes used meanwhile) and what else it tells.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from statistics import median

# llama-bench and mlxcel bench repeat each measurement this often per run.
REPETITIONS = 2
TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Processor seconds that this machine has worked since it started."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / TICK


class Finished:
    """A child that ran to its end: its output and what it used."""

    def __init__(self, command, first_byte=False):
        command = [str(part) for part in command]
        busy, start = busy_seconds(), time.monotonic()
        with tempfile.TemporaryFile() as errors, subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors) as child:
            head = child.stdout.read(1) if first_byte else b""
            self.first_byte_s = time.monotonic() - start
            self.output = (head + child.stdout.read()).decode()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - start
            errors.seek(0)
            message = errors.read().decode(errors="replace")[-2000:]
        if child.returncode:
            sys.exit(f"[bench] {' '.join(command)}: exit status "
                     f"{child.returncode}\n{message}")
        others = busy_seconds() - busy - usage.ru_utime - usage.ru_stime
        self.resources = {
            "peak_rss_mb": usage.ru_maxrss / 1024,
            "other_cpu": max(0.0, others / (wall * os.cpu_count())),
        }


def weight_bytes(directory):
    """Bytes of weights read per generated token: all tensors, except an
    embedding that is not the head as well."""
    embedding = total = 0
    has_head = False
    for path in directory.glob("*.safetensors"):
        with open(path, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(size))
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            total += end - begin
            has_head |= "lm_head." in name
            if "embed_tokens." in name:
                embedding += end - begin
    return total - embedding if has_head else total


class Mlxcel:
    def __init__(self, name, program, model):
        self.name, self.program, self.model = name, program, model

    def run(self, prompt, generate, threads):
        done = Finished([
            self.program, "bench", "-m", self.model, "-p", prompt,
            "-n", generate, "-r", REPETITIONS, "--threads", threads, "--json"])
        found = json.loads(done.output)
        decode = median(found["decode_tok_s"])
        sample = {
            "prefill_tok_s": median(found["prefill_tok_s"]),
            "decode_tok_s": decode,
            "read_bandwidth_gb_s": median(found["read_bandwidth_gb_s"]),
        }
        sample["bandwidth_share"] = (
            decode * (weight_bytes(self.model) + found["decode_bytes_per_token"]
                      - found["weight_bytes"])
            / (sample["read_bandwidth_gb_s"] * 1e9))
        return sample | done.resources


class LlamaCpp:
    def __init__(self, name, program, model):
        self.name, self.program, self.model = name, program, model

    def run(self, prompt, generate, threads):
        # Decode is measured behind the prompt, as mlxcel bench does it.
        prefill = self.measure(threads, "-p", prompt, "-n", 0)
        decode = self.measure(threads, "-p", 0, "-n", generate, "-d", prompt)
        return {
            "prefill_tok_s": prefill.pop("tok_s"),
            "decode_tok_s": decode.pop("tok_s"),
        } | {key: max(prefill[key], decode[key]) for key in prefill}

    def measure(self, threads, *budget):
        done = Finished([self.program, "-m", self.model, *budget,
                         "-r", REPETITIONS, "-t", threads, "-o", "json"])
        (test,) = json.loads(done.output)
        return {"tok_s": median(test["samples_ts"])} | done.resources


class MlxLm:
    def __init__(self, name, python, model):
        self.name, self.python, self.model = name, python, model

    def run(self, prompt, generate, _threads):
        done = Finished([
            self.python, "-m", "mlx_lm", "benchmark", "--model", self.model,
            "-p", prompt, "-g", generate, "-n", 1])
        found = re.search(r"Averages: prompt_tps=([\d.]+), "
                          r"generation_tps=([\d.]+)", done.output)
        return {"prefill_tok_s": float(found.group(1)),
                "decode_tok_s": float(found.group(2))} | done.resources


class FirstToken:
    """Time from starting `mlxcel generate` to the first byte of the reply."""

    def __init__(self, name, program, model):
        self.name, self.program, self.model = name, program, model

    def run(self, _prompt, generate, threads):
        done = Finished([
            self.program, "generate", "-m", self.model, "-p",
            "What is the capital of France?", "-n", generate,
            "--threads", threads], first_byte=True)
        return {"first_token_s": done.first_byte_s} | done.resources


class Tokenizer:
    """One thread loads a tokenizer, encodes a text and decodes the ids."""

    def __init__(self, name, command, model, text):
        self.name = name
        self.command = [*command, model, text]

    def run(self, _prompt, _generate, _threads):
        done = Finished(self.command)
        found = json.loads(done.output)
        megabytes = found["bytes"] / 1e6
        return {"load_ms": 1e3 * found["load"],
                "encode_mb_s": megabytes / found["encode"],
                "decode_mb_s": megabytes / found["decode"],
                } | done.resources
