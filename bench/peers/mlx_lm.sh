#!/usr/bin/env bash
# Installs mlx-lm (and gguf, to write synthetic models for llama.cpp) in a
# virtual environment outside the tree, at the versions pinned in
# scripts/oracle-requirements.txt.
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

version=0.32.2
dir=$peers_dir/mlx-lm-$version

need_packages python3-venv
say "mlx-lm $version in $dir"
install_pinned "$dir" "$root_dir/bench/peers/requirements.txt" \
  "$root_dir/scripts/oracle-requirements.txt"
say "ready: $dir/bin/python"
