#!/usr/bin/env bash
# Fetches the published chat templates that test_chat_template_matrix.py
# renders and the vocabularies, with the ids that they are to give, that
# test_vocabularies.py converts: both are test data of llama.cpp. Kept outside
# the tree; run again, it does nothing.
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

templates=$peers_dir/chat-templates-$llama_cpp_version
vocabularies=$peers_dir/vocabularies-$llama_cpp_version

if [ -d "$templates" ] && [ -d "$vocabularies" ]; then
  say "already in $templates and $vocabularies"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch_llama_cpp "$work" 'models/templates/*' 'models/ggml-vocab-*'
mkdir -p "$peers_dir"
[ -d "$templates" ] || mv "$work/models/templates" "$templates"
rm -rf "$work/models/templates"
[ -d "$vocabularies" ] || mv "$work/models" "$vocabularies"
say "$(find "$templates" -name '*.jinja' | wc -l) templates in $templates"
say "$(find "$vocabularies" -name '*.gguf' | wc -l) vocabularies in $vocabularies"
