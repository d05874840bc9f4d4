#!/usr/bin/env bash
# Builds llama.cpp, as shipped in the PyPI source distribution of
# llama-cpp-python, outside the tree: native, Release, a few of its tools.
# Takes 4 to 15 minutes on 2 cores; run again, it does nothing.
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"

version=$llama_cpp_version
dir=$peers_dir/llama.cpp-$version
tools="llama-bench llama-completion llama-quantize llama-perplexity"

if [ -f "$dir/ready" ]; then
  say "llama.cpp ($version): already built in $dir/bin"
  exit 0
fi

need_packages g++ cmake ninja-build python3-venv
mkdir -p "$dir"
if [ ! -f "$dir/src/CMakeLists.txt" ]; then
  say "fetching llama-cpp-python $version"
  rm -rf "$dir/src" "$dir/unpack"
  fetch_llama_cpp "$dir/unpack" '*'
  mv "$dir/unpack" "$dir/src"
fi

say "configuring in $dir/build"
cmake -S "$dir/src" -B "$dir/build" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_OPENSSL=OFF \
  -DLLAMA_BUILD_COMMIT="llama-cpp-python-$version" >"$dir/configure.log" 2>&1 ||
  { tail -20 "$dir/configure.log" >&2; die "configuring llama.cpp failed"; }

say "building $tools (log: $dir/build.log)"
# shellcheck disable=SC2086
cmake --build "$dir/build" -j "${JOBS:-$(nproc)}" --target $tools \
  >"$dir/build.log" 2>&1 ||
  { tail -20 "$dir/build.log" >&2; die "building llama.cpp failed"; }
mkdir -p "$dir/bin"
for tool in $tools; do
  cp "$dir/build/bin/$tool" "$dir/bin/"
done
rm -rf "$dir/build" "$dir/src"
touch "$dir/ready"
say "ready: $dir/bin"
