#!/usr/bin/env bash
# Makes .venv-oracle: the Python implementations that tests compare with, at
# the versions pinned in oracle-requirements.txt.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_packages python3-venv
say "Python oracles in .venv-oracle"
install_pinned "$root_dir/.venv-oracle" \
  "$root_dir/scripts/oracle-requirements.txt"
say "ready: .venv-oracle/bin/python"
