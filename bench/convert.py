#!/usr/bin/env python3
"""`mlxcel convert` next to mlx_lm.convert: bf16 to 4-bit, group 64.

    convert.py [--program FILE] [--python FILE] [--rounds N] [--config FILE]
               [--folder DIR]

Both quantise the same random checkpoint of a published config; rounds
alternate: mlx-lm, then mlxcel, each into an empty folder. mlxcel syncs what it
writes, reports the error of each tensor and reads every value for it; mlx-lm
does neither. Prints seconds and peak memory of every round, the ratio of the
times within rounds, and whether the planes are the same bytes.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOKENIZER = ROOT / ".deps" / "models" / "SmolLM2-135M-Instruct"


def timed(command):
    """Seconds, and MiB of the most memory it had."""
    start = time.monotonic()
    child = subprocess.Popen([str(part) for part in command],
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"[bench] failed: {child.args}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def planes(folder):
    """Name -> (shape, bytes) of a file whose header is short."""
    with open(folder / "model.safetensors", "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header.pop("__metadata__", None)
        for name, entry in sorted(header.items()):
            begin, end = entry["data_offsets"]
            file.seek(8 + size + begin)
            yield name, entry["shape"], file.read(end - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=ROOT / "build/release/mlxcel")
    parser.add_argument("--python", default=ROOT / ".venv-oracle/bin/python",
                        help="has mlx-lm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--config",
                        default=ROOT / "bench/configs/qwen3-1.7b.json")
    parser.add_argument("--folder", help="where to work; default: TMPDIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        source = Path(work) / "source"
        subprocess.run([options.program, "synth", options.config, source,
                        "--dtype", "bf16"], check=True)
        for path in TOKENIZER.glob("tokenizer*"):
            shutil.copy(path, source)
        compare(options, source, Path(work))


def compare(options, source, work):
    ours, theirs = work / "ours", work / "theirs"
    contenders = {
        "mlx-lm": [options.python, "-m", "mlx_lm", "convert", "--hf-path",
                   source, "--mlx-path", theirs, "-q", "--q-bits", "4",
                   "--q-group-size", "64"],
        "mlxcel": [options.program, "convert", source, ours, "-q", "--q-bits",
                   "4", "--q-group-size", "64"]}
    samples = {name: [] for name in contenders}
    for _ in range(options.rounds):
        shutil.rmtree(ours, ignore_errors=True)
        shutil.rmtree(theirs, ignore_errors=True)
        for name, command in contenders.items():
            samples[name].append(timed(command))
    for name, runs in samples.items():
        seconds = [run[0] for run in runs]
        print(f"{name:>7} {statistics.median(seconds):6.1f} s   "
              + " ".join(f"{value:.1f}" for value in seconds)
              + f"   peak {max(run[1] for run in runs):.0f} MiB")
    ratios = [theirs[0] / ours[0] for theirs, ours in
              zip(samples["mlx-lm"], samples["mlxcel"])]
    same = all(a == b for a, b in zip(planes(ours), planes(theirs),
                                      strict=True))
    print(f"mlx-lm / mlxcel: {statistics.median(ratios):.2f}   "
          f"({' '.join(f'{ratio:.2f}' for ratio in ratios)}); planes "
          + ("equal" if same else "DIFFER"))
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
