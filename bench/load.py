#!/usr/bin/env python3
"""How long a load takes, next to reading the same bytes once.

    load.py MODEL [--program FILE] [--rounds N] [--prompt TOKENS]

Rounds alternate, with the files in the page cache: `cat FILES > /dev/null`,
then `mlxcel bench`, which tells how long its load took and how long the first
prompt and the first replies took beside later, equal ones. A load that leaves
weights to be read later would show there. Also prints how much memory of its
own (neither file nor shared) the program has beside the size of the weights.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cat(files):
    start = time.monotonic()
    subprocess.run(["sh", "-c", 'cat "$@" > /dev/null', "cat", *files],
                   check=True)
    return time.monotonic() - start


def bench(program, model, prompt):
    done = subprocess.run(
        [program, "bench", model, "-p", str(prompt), "-n", "8", "-r", "3",
         "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def own_memory(program, model):
    """Bytes that are neither of a file nor shared, once the model is loaded."""
    process = subprocess.Popen(
        [program, "run", model, "-c", "64"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "MLXCEL_PROFILE_TTFT": "1"})
    try:
        for line in process.stderr:
            if "[TTFT] load" in line:
                break
        status = Path(f"/proc/{process.pid}/status").read_text()
        return 1024 * int(status.split("RssAnon:")[1].split()[0])
    finally:
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--program", type=Path,
                        default=ROOT / "build/release/mlxcel")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=32)
    options = parser.parse_args()
    files = sorted(options.model.glob("*.safetensors"))
    size = sum(file.stat().st_size for file in files)
    cat(files)
    read, load, prompt, reply = [], [], [], []
    for _ in range(options.rounds):
        read.append(cat(files))
        told = bench(options.program, options.model, options.prompt)
        load.append(told["load_s"])
        prompt.append(statistics.median(told["prefill_tok_s"])
                      / told["first_prefill_tok_s"])
        reply.append(statistics.median(told["decode_tok_s"])
                     / told["first_decode_tok_s"])
    ratios = [a / b for a, b in zip(load, read)]

    def line(name, values, unit, factor=1.0):
        values = sorted(value * factor for value in values)
        print(f"{name:34} {statistics.median(values):8.2f} {unit:3}"
              f"({values[0]:.2f}-{values[-1]:.2f})")

    print(f"{options.model}: {size / 1e6:.0f} MB, {options.rounds} rounds")
    line("cat FILES > /dev/null", read, "ms", 1e3)
    line("load", load, "ms", 1e3)
    line("load / cat", ratios, "")
    line(f"first prompt of {options.prompt} / later ones", prompt, "")
    line("first reply of 8 / later ones", reply, "")
    own = own_memory(options.program, options.model)
    print(f"{'memory of its own':34} {own / 1e6:8.1f} MB "
          f"{100 * own / size:.1f} % of the weights")


if __name__ == "__main__":
    main()
