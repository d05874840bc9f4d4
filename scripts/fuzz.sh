#!/usr/bin/env bash
# fuzz.sh SECONDS [NAME]...: builds the fuzz targets (tests/fuzz/NAME_fuzz.cpp)
# with clang under AddressSanitizer and UndefinedBehaviorSanitizer and runs each
# for SECONDS, all or those named. What a run learns stays in
# build/fuzz/corpus/NAME for the next; a finding ends that target, stays in
# build/fuzz/findings and makes the exit status 1.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=${1:?usage: fuzz.sh SECONDS [NAME]...}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "SECONDS: expected a number, got $seconds"
shift
build_dir=build/fuzz
jobs=${JOBS:-$(nproc)}
cd "$root_dir"

names=("$@")
if [ ${#names[@]} = 0 ]; then
  for source in tests/fuzz/*_fuzz.cpp; do
    names+=("$(basename "$source" _fuzz.cpp)")
  done
fi
for name in "${names[@]}"; do
  [ -f "tests/fuzz/${name}_fuzz.cpp" ] || die "no target is named $name"
done

need_packages clang libclang-rt-14-dev
say "building in $build_dir"
cmake --preset fuzz -B "$build_dir" >/dev/null
cmake --build "$build_dir" -j "$jobs" --target "${names[@]/%/_fuzz}"

# Prepares the seeds of a target and runs it.
fuzz_target() {
  local name=$1 seeds=$build_dir/seeds/$1 corpus=$build_dir/corpus/$1
  local options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048
    -print_final_stats=1 -verbosity=1
    -artifact_prefix="$build_dir/findings/$name-")
  rm -rf "$seeds"
  mkdir -p "$seeds" "$corpus" "$build_dir/findings"
  if [ -f "tests/fuzz/${name}_seeds.py" ]; then
    python3 "tests/fuzz/${name}_seeds.py" "$seeds"
  fi
  [ ! -f "tests/fuzz/$name.dict" ] ||
    options+=(-dict="tests/fuzz/$name.dict")
  say "$name: $(find "$seeds" -type f | wc -l) seeds, $seconds s"
  timeout $((seconds + 120)) "$build_dir/${name}_fuzz" "${options[@]}" \
    "$corpus" "$seeds" >"$build_dir/$name.log" 2>&1
}

export ASAN_OPTIONS=allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
failed=0
for name in "${names[@]}"; do
  if fuzz_target "$name"; then
    say "$name: no finding, $(awk '/stat::number_of_executed_units/ {print $2}' \
      "$build_dir/$name.log") inputs"
  else
    failed=1
    tail -n 60 "$build_dir/$name.log"
    say "$name: a finding (see $build_dir/findings, $build_dir/$name.log)"
  fi
done
exit $failed
