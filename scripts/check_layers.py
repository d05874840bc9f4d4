#!/usr/bin/env python3
"""Checks that the source tree keeps its shape.

Includes point downwards only: apps, server, engine, loading, models, nn,
backend, weights, config, core; hub, tokenizer, chat and media need only core;
cache needs backend and core. A few names have one home: MLX in backend/graph
and backend/cuda, x86 intrinsics in backend/cpu, libcurl and OpenSSL in hub/download, system calls in core/os_*.
Heavy third-party headers stay out of headers, every folder says what it is
for in a README.md, and no file is larger than 1 MB.

Usage: check_layers.py [ROOT]; prints one line per fault, exits 1 if any.
"""

import re
import subprocess
import sys
from pathlib import Path

# What each folder may include, itself aside.
_STACK = ["core", "config", "weights", "backend", "nn", "models", "loading",
          "engine", "server", "apps"]
_BESIDE = {"hub", "tokenizer", "chat", "media"}
ALLOWED = {name: set(_STACK[:i]) for i, name in enumerate(_STACK)}
ALLOWED.update({name: {"core"} for name in _BESIDE})
ALLOWED["cache"] = {"backend", "core"}
for _name in ("loading", "engine", "server", "apps"):
    ALLOWED[_name] |= _BESIDE | {"cache"}

MAX_BYTES = 1 << 20
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".in"}
HEADERS = {".h", ".cuh"}
# In the folders of mlxcel/models/, the files that families share.
SHARED_BY_FAMILIES = {"decoder_family", "fields"}
README_ROOTS = ("apps", "bench", "docs", "scripts", "tests")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(
    r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
MLX_NAME = re.compile(r"\bmx::|\bmlx::core\b")
X86_HEADER = re.compile(r"^(?:\w*mmintrin|x86intrin|x86gprintrin|cpuid)\.h$")
X86_NAME = re.compile(r"\b_mm(?:256|512)?_\w+|\b__m(?:128|256|512)[id]?\b")
SYSTEM_HEADER = re.compile(
    r"^(?:sys/.*|linux/.*|unistd|fcntl|signal|pthread|sched|dirent|dlfcn"
    r"|termios|poll)(?:\.h)?$|^csignal$")
NETWORK_HEADER = re.compile(r"^(?:curl|openssl)/")
HEAVY_HEADER = re.compile(
    r"^(?:mlx/|simdjson|fmt/|spdlog/|CLI/|nlohmann/json\.hpp)")


def strip_comments(text):
    """Blanks comments and keeps line numbers; string literals stay."""
    def blank(match):
        found = match.group(0)
        return found if found[0] == '"' else re.sub(r"[^\n]", " ", found)
    return COMMENT.sub(blank, text)


def listed_files(root):
    """Files that git tracks or would track; without git, all files."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached",
               "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        names = done.stdout.decode().split("\0")
        paths = [root / name for name in names if name]
    else:
        paths = root.rglob("*")
    return sorted(path for path in paths if path.is_file())


def layer_of(parts):
    """The layer of a path given as parts, or None outside the layers."""
    if len(parts) > 1 and parts[0] == "apps":
        return "apps"
    if len(parts) > 2 and parts[0] == "mlxcel":
        return parts[1]
    return None


def family_of(parts):
    """("text", "qwen3") for mlxcel/models/text/qwen3.h; None for what the
    families share."""
    if len(parts) < 4 or parts[:2] != ("mlxcel", "models"):
        return None
    stem = parts[3].split(".")[0]
    return None if stem in SHARED_BY_FAMILIES else (parts[2], stem)


def include_fault(source, target):
    """Why source (path parts) may not include target, or None."""
    own, other = layer_of(source), layer_of(target)
    if target[0] == "tests":
        return "tests are included by tests only"
    if other is None:
        return None
    if other not in ALLOWED:
        return f"unknown layer {other}"
    if other != own and other not in ALLOWED[own]:
        return f"{own} may not include {other}"
    if other == "backend" and len(target) > 3 and target[:3] != source[:3]:
        return f"only backend/{target[2]} includes its own files"
    if target[:3] == ("mlxcel", "weights", "convert"):
        if own != "apps" and source[:3] != target[:3]:
            return "weights/convert is a tool, never a load path"
    family = family_of(target)
    if family is not None:
        if own == "models" and family_of(source) != family:
            return f"a model family never includes another ({family[1]})"
        if own not in ("models", "loading"):
            return f"{own} sees models through loading only"
    return None


def check_source(path, parts):
    text = strip_comments(path.read_text(encoding="utf-8", errors="replace"))

    def line(match):
        return text.count("\n", 0, match.start(match.lastindex or 0)) + 1

    own = layer_of(parts)
    folder = "/".join(parts[1:3])
    mlx_home = folder in ("backend/graph", "backend/cuda")
    x86_home = folder == "backend/cpu"
    system_home = own == "core" and parts[2].startswith("os_")
    if own not in ALLOWED:
        yield 1, f"unknown layer {own}"
        return
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        if name.startswith(("mlxcel/", "apps/", "tests/")):
            fault = include_fault(parts, tuple(name.split("/")))
            if fault:
                yield line(match), f'"{name}": {fault}'
        elif match.group(1) == '"' and not name.startswith("mlx/"):
            if not (path.parent / name).exists():
                continue
            yield line(match), f'"{name}": includes are rooted'
        if NETWORK_HEADER.match(name) and folder != "hub/download":
            yield line(match), f"{name}: the network stays in hub/download"
        if name.startswith("mlx/") and not mlx_home:
            yield line(match), f"{name}: MLX stays in backend/graph and cuda"
        if X86_HEADER.match(name) and not x86_home:
            yield line(match), f"{name}: intrinsics stay in backend/cpu"
        if SYSTEM_HEADER.match(name) and not system_home:
            yield line(match), f"{name}: system calls stay in core/os_*"
        if path.suffix in HEADERS and HEAVY_HEADER.match(name):
            if not (name.startswith("mlx/") and mlx_home):
                yield line(match), f"{name}: too heavy for a header"
    for pattern, home, where in (
            (MLX_NAME, mlx_home, "MLX stays in backend/graph and cuda"),
            (X86_NAME, x86_home, "intrinsics stay in backend/cpu")):
        match = None if home else pattern.search(text)
        if match:
            yield line(match), f"{match.group(0)}: {where}"


def check_tree(root):
    """Returns the faults as lines `path:line: what`."""
    root = Path(root)
    faults = []
    folders = set()
    for path in listed_files(root):
        parts = path.relative_to(root).parts
        name = "/".join(parts)
        if path.stat().st_size > MAX_BYTES:
            faults.append(f"{name}:1: larger than 1 MB")
        if parts[0] in README_ROOTS and len(parts) > 1:
            folders.add(parts[0])
        if parts[0] == "mlxcel":
            folders.update(
                "/".join(parts[:i]) for i in range(1, len(parts)))
        if path.suffix in SOURCES and layer_of(parts):
            faults.extend(f"{name}:{line}: {what}"
                          for line, what in check_source(path, parts))
    faults.extend(f"{folder}:1: has no README.md" for folder in sorted(folders)
                  if not (root / folder / "README.md").is_file())
    return faults


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).parent.parent
    faults = check_tree(root.resolve())
    for fault in faults:
        print(fault)
    print(f"[check_layers] {len(faults)} faults" if faults
          else "[check_layers] the tree keeps its shape")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
