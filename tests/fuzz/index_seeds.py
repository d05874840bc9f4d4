"""Seeds: indexes as they are published, and one for every item of line 2 of
withstand.md. Beside them lie model.safetensors, which holds "a", and links
(index_fuzz.cpp)."""

import json
import sys
from pathlib import Path

GOOD = {"a": "model.safetensors"}


def index(weight_map, **metadata):
    return {"metadata": metadata, "weight_map": weight_map}


ITEMS = {
    "good": index(GOOD, total_size=0),
    "two-tensors-of-a-shard": index({**GOOD, "b": "model.safetensors"}),
    "parent-folder": index({"a": "../model.safetensors"}),
    "absolute-path": index({"a": "/model.safetensors"}),
    "sub-folder": index({"a": "x/model.safetensors"}),
    "backslash": index({"a": "..\\model.safetensors"}),
    "dots": index({"a": ".."}),
    "no-name": index({"a": ""}),
    "nul": index({"a": "x\0.safetensors"}),
    "link-out-of-the-folder": index({"a": "out.link"}),
    "link-to-a-device": index({"a": "zero.link"}),
    "link-to-nothing": index({"a": "gone.safetensors"}),
    "link-to-itself": index({"a": "loop.safetensors"}),
    "missing": index({"a": "absent.safetensors"}),
    "one-of-two-missing": index({**GOOD, "b": "absent.safetensors"}),
    "listed-but-absent": index({**GOOD, "b": "model.safetensors"}),
    "other-case": index({"a": "Model.safetensors"}),
    "other-case-of-a-tensor": index({"A": "model.safetensors"}),
    "many-entries": index({str(i): f"{i}.safetensors" for i in range(400)}),
    "total-size-negative": index(GOOD, total_size=-1),
    "total-size-huge": index(GOOD, total_size=2 ** 64 - 1),
    "total-size-beyond": index(GOOD, total_size=2 ** 64),
    "total-size-text": index(GOOD, total_size="1"),
    "total-size-float": index(GOOD, total_size=1e300),
    "metadata-list": {"metadata": [], "weight_map": GOOD},
    "numbered": index({"a": "model-00001-of-99999.safetensors"}),
    "consolidated": index({"a": "consolidated.safetensors"}),
    "adapter": index({"a": "adapters.safetensors"}),
    "hidden": index({"a": ".hidden.safetensors"}),
    "value-number": index({"a": 3}),
    "value-null": index({"a": None}),
    "map-empty": index({}),
    "map-list": index([]),
    "no-map": {},
    "list": [],
}
TEXTS = {
    "tensor-twice":
        '{"weight_map": {"a": "model.safetensors", "a": "b.safetensors"}}',
    "map-twice": '{"weight_map": {"a": "model.safetensors"}, "weight_map": {}}',
    "deep": "[" * 100_000,
    "deep-value": '{"weight_map": ' + "[" * 100_000,
    "empty": "",
    "not-json": "{weight_map",
    "byte-order-mark": '\ufeff{"weight_map": {"a": "model.safetensors"}}',
    "surrogate": '{"weight_map": {"\\ud800": "model.safetensors"}}',
}


def main():
    for name, seed in ITEMS.items():
        Path(sys.argv[1], name).write_text(json.dumps(seed))
    for name, text in TEXTS.items():
        Path(sys.argv[1], name).write_text(text)
    Path(sys.argv[1], "invalid-utf-8").write_bytes(
        b'{"weight_map": {"\xff": "model.safetensors"}}')


if __name__ == "__main__":
    main()
