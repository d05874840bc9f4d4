#!/usr/bin/env python3
"""tidy.py BUILD_DIR JOBS PATTERN: clang-tidy over the sources that PATTERN
finds in the build's compile commands. A file that passed is not looked at
again until it, a header of ours that it includes, or .clang-tidy changes.
"""

import hashlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Clang reads neither GCC's precompiled headers nor these flags.
FOREIGN = re.compile(r"-Winvalid-pch|-include \S*cmake_pch\S*"
                     r"|-mprefer-vector-width=\d+|-Wno-restrict")


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
            entry["command"] = FOREIGN.sub("", entry["command"])
            yield entry


def fingerprint(entry):
    """A digest of what decides on the file's faults."""
    command = shlex.split(entry["command"])
    command[command.index("-o") + 1] = "-"
    listed = subprocess.run(command + ["-MM"], cwd=entry["directory"],
                            capture_output=True, text=True, check=True).stdout
    names = listed.replace("\\\n", " ").split(":", 1)[1].split()
    digest = hashlib.sha256(entry["command"].encode())
    for name in sorted(names) + [str(ROOT / ".clang-tidy")]:
        path = Path(entry["directory"], name)
        if path.is_relative_to(ROOT):
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()


def check(entry, folder, passed):
    """Whether the file has no faults; prints those it has."""
    try:
        mark = passed / fingerprint(entry)
    except subprocess.CalledProcessError as error:
        print(error.stderr, flush=True)
        return False
    if mark.exists():
        return True
    done = subprocess.run(["clang-tidy", "--quiet", "-p", folder,
                           entry["file"]],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
        return False
    mark.touch()
    return True


def main(build_dir, jobs, pattern):
    build_dir = Path(build_dir).resolve()
    entries = list(chosen(build_dir, pattern))
    if not entries:
        sys.exit(f"[tidy] no source matches {pattern}")
    passed = build_dir / "tidy-passed"
    passed.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/compile_commands.json", "w",
                  encoding="utf-8") as file:
            json.dump(entries, file)
        with ThreadPoolExecutor(int(jobs)) as pool:
            fine = list(pool.map(
                lambda entry: check(entry, folder, passed), entries))
    print(f"[tidy] {len(fine)} files, {fine.count(False)} with faults")
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
