#!/usr/bin/env bash
# sanitize.sh [JOBS]: builds the tests without MLX (parsers, engine, cpu
# kernels) under AddressSanitizer and UndefinedBehaviorSanitizer and runs the
# fast ones, within SANITIZE_SECONDS (900).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

jobs=${1:-$(nproc)}
seconds=${SANITIZE_SECONDS:-900}
build_dir=build/sanitize
cd "$root_dir"

say "building in $build_dir"
cmake --preset asan -B "$build_dir" -DMLXCEL_SANITIZE=address,undefined \
  >/dev/null
cmake --build "$build_dir" -j "$jobs" --target mlxcel_tests

# A refused allocation has to reach the program, as it does without sanitizer;
# so has a bus error. Stack frames on the heap are aligned to 32 bytes, too
# little for AVX-512 (GCC bug 110027).
asan=allocator_may_return_null=1:handle_sigbus=0
asan+=:detect_stack_use_after_return=0
export ASAN_OPTIONS=$asan
export UBSAN_OPTIONS=print_stacktrace=1
status=0
timeout "$seconds" scripts/run_tests.py "$build_dir" --jobs "$jobs" \
  --ctest-only --label sanitize || status=$?
[ $status != 124 ] || die "not done within $seconds s"
exit $status
