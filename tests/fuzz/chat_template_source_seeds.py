"""Seeds: the templates of the oracle tests, the published ones where they have
been fetched."""

import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
import chat_template_cases as cases  # noqa: E402

out = Path(sys.argv[1])
peers = Path(os.environ.get("MLXCEL_PEERS_DIR",
                            Path.home() / ".cache" / "mlxcel-peers"))
texts = cases.SNIPPETS + cases.program_templates(200) + random.Random(1).sample(
    list(cases.table_templates()), 600)
texts += [file.read_text(encoding="utf-8") for file in
          sorted(peers.glob("chat-templates-*/*.jinja"))]
for i, text in enumerate(texts):
    (out / f"seed-{i:04}").write_text(text, encoding="utf-8")
