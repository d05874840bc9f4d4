"""The SafeTensors reader against the official package, on files made from a
seed: it never accepts what the package refuses, what both accept they read
alike, and what it refuses alone it refuses for a reason of RULES, which is
looked up in the file itself."""

import json
import os
import re
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from safetensors_cases import make_case

safetensors = pytest.importorskip("safetensors")
pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", ROOT / "build" / "release"))
PROBE = BUILD / "safetensors_probe"

pytestmark = pytest.mark.skipif(
    not PROBE.exists(), reason="safetensors_probe is not built")

BATCH = 5000
MOST_DIMS = 16
# What the package has and this reader has not: nothing here computes with
# them, and half of them take no whole bytes.
FOREIGN_DTYPES = {"F4", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}
FIELDS = {"dtype", "shape", "data_offsets"}


class Pairs(list):
    """An object as it is written: equal keys stay."""


def header_of(data):
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length], object_pairs_hook=Pairs,
                      strict=False)


def named_entries(data):
    return [(name, value) for name, value in header_of(data)
            if name != "__metadata__"]


def object_entries(data):
    return [(name, value) for name, value in named_entries(data)
            if isinstance(value, Pairs)]


def twice(pairs):
    return max(Counter(key for key, _ in pairs).values(), default=0) > 1


def duplicate_name(data):
    return twice(header_of(data))


def duplicate_metadata_key(data):
    return any(name == "__metadata__" and isinstance(value, Pairs) and
               twice(value) for name, value in header_of(data))


def unknown_field(data):
    return any(key not in FIELDS for _, entry in object_entries(data)
               for key, _ in entry)


def control_character(data):
    return any(ord(c) < 0x20 or ord(c) == 0x7f
               for name, _ in named_entries(data) for c in name)


def shapes(data):
    return [value for _, entry in object_entries(data)
            for key, value in entry if key == "shape"]


def too_many_dims(data):
    return any(len(shape) > MOST_DIMS for shape in shapes(data))


def dim_beyond_signed(data):
    return any(dim > 2**63 - 1 for shape in shapes(data) for dim in shape)


def foreign_dtype(data):
    return any(key == "dtype" and value in FOREIGN_DTYPES
               for _, entry in object_entries(data) for key, value in entry)


def dtype_as_object(data):
    return any(key == "dtype" and isinstance(value, Pairs)
               for _, entry in object_entries(data) for key, value in entry)


def entry_as_list(data):
    return any(not isinstance(value, Pairs) and isinstance(value, list)
               for _, value in named_entries(data))


def leading_space(data):
    return data[8:9] in b" \t\r\n"


# Rules that are stricter than the package's: (name, pattern of our message,
# proof that the file breaks it).
RULES = [
    ("a name twice", r"appears twice", duplicate_name),
    ("a metadata key twice", r"duplicate key", duplicate_metadata_key),
    ("a field of no meaning", r"unknown or repeated field", unknown_field),
    ("a control character in a name", r"a control character in the name",
     control_character),
    ("more than 16 dimensions", r"more than 16 dimensions", too_many_dims),
    ("a dimension beyond 63 bits", r"shape: \d+ is too large",
     dim_beyond_signed),
    ("a dtype that nothing here reads", r"unknown dtype", foreign_dtype),
    ("a dtype as an object", r"expected a dtype", dtype_as_object),
    ("an entry as a list", r"expected '\{', got \"\[\"", entry_as_list),
    ("space before the object", r"does not start with '\{'", leading_space),
]


def probe(mode, data):
    done = subprocess.run([PROBE, mode], input=data, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def official(data):
    """Name -> (dtype, shape, bytes), or the package's reason."""
    try:
        return {name: (tensor["dtype"], tensor["shape"], bytes(tensor["data"]))
                for name, tensor in safetensors.deserialize(data)}
    except safetensors.SafetensorError as error:
        return str(error)


def judge(data, ours, tally):
    """What is wrong with the answer, or None."""
    theirs = official(data)
    if isinstance(theirs, str):
        tally["refused by both" if "error" in ours else "accepted alone"] += 1
        return None if "error" in ours else f"the package says: {theirs}"
    if "error" in ours:
        for name, pattern, holds in RULES:
            if re.search(pattern, ours["error"]):
                tally[name] += 1
                return None if holds(data) else "the file does not break it"
        return "refused alone, by no rule"
    tally["accepted by both"] += 1
    read = {name: (dtype, shape, data[begin:end])
            for name, dtype, shape, begin, end in ours["tensors"]}
    if len(read) != len(ours["tensors"]):
        return "a name twice"
    return None if read == theirs else f"the package reads {theirs}"


def compare(seeds):
    tally = Counter()
    for first in range(seeds.start, seeds.stop, BATCH):
        batch = range(first, min(first + BATCH, seeds.stop))
        files = [make_case(seed) for seed in batch]
        answers = probe("headers", b"".join(
            struct.pack("<I", len(data)) + data for data in files))
        assert len(answers) == len(files)
        for seed, data, ours in zip(batch, files, answers):
            wrong = judge(data, ours, tally)
            assert wrong is None, f"case {seed}: {data!r}: {ours}: {wrong}"
    return tally


def expect_all_kinds(tally, cases):
    """The cases reach what they are for: enough of both outcomes, and every
    rule of the list is needed."""
    assert tally["accepted by both"] > cases // 10, tally
    assert tally["refused by both"] > cases // 4, tally
    unused = [name for name, _, _ in RULES if tally[name] == 0]
    assert not unused, (unused, tally)


def test_headers():
    expect_all_kinds(compare(range(100_000)), 100_000)


@pytest.mark.slow
def test_many_headers():
    expect_all_kinds(compare(range(1_000_000, 4_000_000)), 3_000_000)


def test_loaded_files(tmp_path):
    """The bytes of mapped files are those that safe_open gives."""
    paths = []
    for seed in range(3000):
        path = tmp_path / f"{seed}.safetensors"
        path.write_bytes(make_case(seed))
        paths.append(path)
    answers = probe("load", "".join(f"{p}\n" for p in paths).encode())
    compared = 0
    for path, ours in zip(paths, answers):
        theirs = official(path.read_bytes())
        try:
            safetensors.safe_open(path, framework="np")
            opens = True
        except safetensors.SafetensorError:
            opens = False
        assert opens == isinstance(theirs, dict), path
        if "tensors" in ours:
            assert opens, (path, ours)
            assert {name: (dtype, shape, bytes.fromhex(data))
                    for name, dtype, shape, data in ours["tensors"]} == theirs
            compared += len(theirs)
    assert compared > 300


def wide(header, size):
    return struct.pack("<Q", size) + header.ljust(size, b" ")


@pytest.mark.parametrize("size", [99_999_999, 100_000_000, 100_000_001])
def test_limit_of_the_header(size):
    data = wide(b"{}", size)
    ours = probe("headers", struct.pack("<I", len(data)) + data)[0]
    assert ("error" in ours) == isinstance(official(data), str) == (
        size > 100_000_000), (ours, official(data))
