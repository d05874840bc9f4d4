"""bench/run.py's parts, with programs that print what is expected."""

import json
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import contenders  # noqa: E402
import table  # noqa: E402


def program(path, text):
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


def checkpoint(folder, tensors):
    """A directory whose shard has these (name, size) tensors."""
    header, offset = {"__metadata__": {"format": "mlx"}}, 0
    for name, size in tensors:
        header[name] = {"dtype": "U8", "shape": [size],
                        "data_offsets": [offset, offset + size]}
        offset += size
    data = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(data)) + data + bytes(offset))
    return folder


def test_weight_bytes_leave_an_untied_embedding_out(tmp_path):
    tied = [("model.embed_tokens.weight", 100), ("model.norm.weight", 10)]
    assert contenders.weight_bytes(checkpoint(tmp_path / "a", tied)) == 110
    untied = tied + [("lm_head.weight", 50)]
    assert contenders.weight_bytes(checkpoint(tmp_path / "b", untied)) == 60


def test_mlxcel_sample(tmp_path):
    path = program(tmp_path / "mlxcel", """
import json, sys
assert sys.argv[1:4] == ["bench", "-m", sys.argv[3]] and "--json" in sys.argv
print(json.dumps({"prefill_tok_s": [100, 300], "decode_tok_s": [40, 60],
                  "read_bandwidth_gb_s": [5, 10, 20],
                  "weight_bytes": 1000, "decode_bytes_per_token": 1000}))
""")
    model = checkpoint(tmp_path / "model", [("model.embed_tokens.weight", 1000)])
    sample = contenders.Mlxcel("ours", path, model).run(512, 64, 2)
    assert sample["prefill_tok_s"] == 200
    assert sample["decode_tok_s"] == 50
    assert sample["bandwidth_share"] == pytest.approx(50 * 1000 / 10e9)
    assert sample["peak_rss_mb"] > 1 and 0 <= sample["other_cpu"]


def test_llama_cpp_sample(tmp_path):
    path = program(tmp_path / "llama-bench", """
import json, sys
values = dict(zip(sys.argv[1::2], sys.argv[2::2]))
prefill = values["-p"] == "512" and values["-n"] == "0"
assert prefill or (values["-n"], values["-d"]) == ("64", "512")
print(json.dumps([{"samples_ts": [10, 30] if prefill else [5, 7, 6]}]))
""")
    sample = contenders.LlamaCpp("theirs", path, "x.gguf").run(512, 64, 2)
    assert (sample["prefill_tok_s"], sample["decode_tok_s"]) == (20, 6)


def test_first_token_is_timed_before_the_rest(tmp_path):
    path = program(tmp_path / "mlxcel", """
import sys, time
print("Par", end="", flush=True)
time.sleep(3)
print("is")
""")
    sample = contenders.FirstToken("ours", path, "m").run(None, 8, 2)
    assert sample["first_token_s"] < 2.5


def test_a_failing_program_ends_the_run_with_its_message(tmp_path):
    path = program(tmp_path / "llama-bench",
                   "import sys\nsys.exit('no such model')")
    with pytest.raises(SystemExit, match="no such model"):
        contenders.LlamaCpp("theirs", path, "x.gguf").run(512, 64, 2)


def test_table_pairs_rounds():
    def samples(*decode):
        return [{"decode_tok_s": value} for value in decode]

    text = table.render({
        "title": "M", "prompt": 512, "generate": 64, "threads": 2,
        "samples": {"ours": samples(20, 40, 60), "theirs": samples(10, 40, 20)},
    })
    rows = [[cell.strip() for cell in line.split("|")[1:-1]]
            for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == ["program", "decode tok/s", "ours / theirs, decode"]
    assert rows[1] == ["ours", "40.0 (20.0–60.0)", ""]
    # 20/10, 40/40, 60/20: the median of the ratios, not of the medians.
    assert rows[2] == ["theirs", "20.0 (10.0–40.0)", "2.00 (1.00–3.00)"]
