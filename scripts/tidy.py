#!/usr/bin/env python3
"""tidy.py BUILD_DIR JOBS PATTERN: clang-tidy over the sources that PATTERN
finds in the build's compile commands. GCC's precompiled headers are left out
of the commands, since clang cannot read them.
"""

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRECOMPILED = re.compile(
    r"-Winvalid-pch|-include \S*cmake_pch\S*")
FOREIGN_FLAGS = re.compile(r"-mprefer-vector-width=\d+")


def chosen(build_dir, pattern):
    """The compile commands to check, made readable for clang."""
    with open(build_dir / "compile_commands.json", encoding="utf-8") as file:
        commands = json.load(file)
    for entry in commands:
        path = Path(entry["file"])
        if not path.is_relative_to(ROOT) or path.is_relative_to(build_dir):
            continue
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("tests/") and re.search(pattern, name):
            command = PRECOMPILED.sub("", entry["command"])
            entry["command"] = FOREIGN_FLAGS.sub("", command)
            yield entry


def check(folder, path):
    done = subprocess.run(
        ["clang-tidy", "--quiet", "-p", folder, path],
        capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def main(build_dir, jobs, pattern):
    entries = list(chosen(Path(build_dir).resolve(), pattern))
    if not entries:
        sys.exit(f"[tidy] no source matches {pattern}")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/compile_commands.json", "w",
                  encoding="utf-8") as file:
            json.dump(entries, file)
        paths = sorted({entry["file"] for entry in entries})
        with ThreadPoolExecutor(int(jobs)) as pool:
            fine = list(pool.map(lambda path: check(folder, path), paths))
    print(f"[tidy] {len(fine)} files, {fine.count(False)} with faults")
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
