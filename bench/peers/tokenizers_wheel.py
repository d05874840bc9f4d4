"""tokenizers_wheel.py MODEL_DIR TEXT_FILE: what mlxcel_tokenizer_bench does,
with the official `tokenizers` package."""

import json
import os
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer  # noqa: E402: reads the variables above


def pieces_of(text):
    """Pieces of about 64 KiB that end with a line."""
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", min(begin + 65536, len(text) - 1))
        end = end + 1 if end >= 0 else len(text)
        yield text[begin:end].decode()
        begin = end


def timed(work):
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def main():
    with open(sys.argv[2], "rb") as file:
        text = file.read()
    pieces = list(pieces_of(text))
    tokenizer, load = timed(
        lambda: Tokenizer.from_file(sys.argv[1] + "/tokenizer.json"))
    ids, encode = timed(lambda: [tokenizer.encode(p).ids for p in pieces])
    _, decode = timed(lambda: [
        tokenizer.decode(each, skip_special_tokens=False) for each in ids])
    print(json.dumps({
        "load": load, "encode": encode, "decode": decode,
        "tokens": sum(map(len, ids)), "bytes": len(text)}))


if __name__ == "__main__":
    main()
