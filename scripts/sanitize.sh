#!/usr/bin/env bash
# sanitize.sh [JOBS]: builds the tests without MLX (parsers, engine, cpu
# kernels) and the fuzz targets with clang under AddressSanitizer and
# UndefinedBehaviorSanitizer, runs the fast tests, within SANITIZE_SECONDS
# (900), and each target for FUZZ_SECONDS (10).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

jobs=${1:-$(nproc)}
build_dir=build/fuzz
cd "$root_dir"

need_packages clang libclang-rt-14-dev
say "building in $build_dir"
cmake --preset fuzz -B "$build_dir" >/dev/null
cmake --build "$build_dir" -j "$jobs" --target mlxcel_tests

# A refused allocation has to reach the program, as it does without sanitizer;
# so has a bus error. Stack frames on the heap are aligned too little for
# AVX-512.
asan=allocator_may_return_null=1:handle_sigbus=0
asan+=:detect_stack_use_after_return=0
status=0
ASAN_OPTIONS=$asan UBSAN_OPTIONS=print_stacktrace=1 \
  timeout "${SANITIZE_SECONDS:-900}" scripts/run_tests.py "$build_dir" \
  --jobs "$jobs" --ctest-only --label sanitize || status=$?
[ $status != 124 ] || die "the tests were not done in time"
JOBS=$jobs scripts/fuzz.sh "${FUZZ_SECONDS:-10}" || status=1
exit $status
