#!/usr/bin/env bash
# check.sh BUILD_DIR JOBS: formatting, clang-tidy, the shape of the tree.
# TIDY=all looks at every file, TIDY=none at none; otherwise clang-tidy reads
# the code that handles untrusted input, which takes minutes, not tens.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$1
jobs=$2
untrusted='mlxcel/(core|config|hub|weights|loading|tokenizer|chat)/'
cd "$root_dir"
failed=0

say "clang-format"
git ls-files -z -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' |
  xargs -0 -r clang-format --dry-run -Werror || failed=1

say "layers"
python3 scripts/check_layers.py || failed=1

case ${TIDY:-} in
  none) pattern= ;;
  all) pattern='(mlxcel|apps)/' ;;
  '') pattern=$untrusted ;;
  *) pattern=$TIDY ;;
esac
if [ -n "$pattern" ]; then
  say "clang-tidy: files matching $pattern"
  python3 scripts/tidy.py "$build_dir" "$jobs" "$pattern" || failed=1
fi

[ $failed = 0 ] || die "faults above"
say "no faults"
