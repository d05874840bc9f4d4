"""Seeds: the conversations of the oracle tests, and random ones."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))
from chat_template_conversations import (  # noqa: E402
    CONVERSATIONS, STRANGE, WEATHER, RandomChats)

out = Path(sys.argv[1])
chats = RandomChats("seeds")
inputs = [{"messages": messages, "tools": [WEATHER, STRANGE],
           "documents": [{"title": "T"}]} for messages in
          CONVERSATIONS.values()]
inputs += [chats.request() for _ in range(200)]
for i, made in enumerate(inputs):
    (out / f"seed-{i:04}").write_text(
        json.dumps(made, ensure_ascii=i % 2 == 0), encoding="utf-8")
