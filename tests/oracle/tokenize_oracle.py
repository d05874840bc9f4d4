"""Our tokenizer, through the probe program, for tests that compare it."""

import json
import os
import subprocess
from pathlib import Path

BUILD = Path(os.environ.get("MLXCEL_BUILD_DIR", "build/release"))
PEERS = Path(os.environ.get("MLXCEL_PEERS_DIR",
                            Path.home() / ".cache/mlxcel-peers"))


def probe(folder, lines, *options):
    """Texts to ids, or lists of ids to text."""
    result = subprocess.run(
        [BUILD / "tokenize_probe", folder, *options], capture_output=True,
        check=True, timeout=60, input="".join(json.dumps(line) + "\n"
                                              for line in lines).encode())
    return [json.loads(line) for line in result.stdout.splitlines()]
