#!/usr/bin/env bash
# Fetches the vocabularies that test_vocabularies.py converts, with the ids
# that they are to give: models/ggml-vocab-* of the llama.cpp that the PyPI
# source distribution of llama-cpp-python carries. Kept outside the tree; run
# again, it does nothing.
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
backend="scikit-build-core==1.1.2"
peers_dir=${MLXCEL_PEERS_DIR:-$HOME/.cache/mlxcel-peers}
dir=$peers_dir/vocabularies-$version

if [ -d "$dir" ]; then
  say "already in $dir"
  exit 0
fi
need_packages python3-venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# pip reads an sdist's metadata through its build backend.
make_venv "$deps_dir/py"
"$deps_dir/py/bin/pip" install --quiet --disable-pip-version-check "$backend"
fetch_pypi llama-cpp-python "$version" "$sha256" "$work/sdist" \
  --no-binary llama-cpp-python --no-build-isolation
tar xzf "$work"/sdist/llama_cpp_python-*.tar.gz -C "$work" \
  --wildcards '*/vendor/llama.cpp/models/ggml-vocab-*'
mkdir -p "$peers_dir"
mv "$work/llama_cpp_python-$version/vendor/llama.cpp/models" "$dir"
say "$(find "$dir" -name '*.gguf' | wc -l) vocabularies in $dir"
