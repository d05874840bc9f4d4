#!/usr/bin/env bash
# Prepares a Debian 12 machine to build: installs the missing Debian packages
# and unpacks the MLX C++ library under .deps/. Run again, it changes nothing
# and needs no network.
#
#   scripts/setup.sh           what building and testing need
#   scripts/setup.sh --check   and what `make check` needs
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

mlx_version=0.32.4
mlx_sha256=0e0a24fa2ce8b6b94d2e6a90604e8813aa8e29fcb918bb2aa01cfb6d133d8cee

packages=(
  g++ cmake ninja-build ccache git python3 python3-venv
  libsimdjson-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
  libpcre2-dev libutf8proc-dev libcurl4-openssl-dev libssl-dev
  libgtest-dev libbenchmark-dev
)
case ${1:-} in
  '') ;;
  --check) packages+=(clang-format clang-tidy) ;;
  *) die "unknown argument: $1" ;;
esac

# Unpacks beside the final place and renames, so that a cut run leaves nothing
# that looks complete.
unpack_mlx() {
  local dest=$1 stage=$1.new wheels=$deps_dir/wheels
  rm -rf "$stage" "$wheels"
  fetch_pypi mlx-cpu "$mlx_version" "$mlx_sha256" "$wheels" --only-binary :all:
  "$deps_dir/py/bin/python" -m zipfile -e "$wheels"/mlx_cpu-*.whl "$stage"
  printf '%s\n' "$mlx_sha256" >"$stage/.sha256"
  rm -rf "$dest" "$wheels"
  mv "$stage" "$dest"
}

need_packages "${packages[@]}"
if [ "$(cat "$deps_dir/mlx-cpu/.sha256" 2>/dev/null)" = "$mlx_sha256" ]; then
  say "MLX $mlx_version: present in ${deps_dir#"$root_dir"/}/mlx-cpu"
else
  say "MLX $mlx_version: fetching the PyPI wheel mlx-cpu"
  unpack_mlx "$deps_dir/mlx-cpu"
  say "MLX $mlx_version: unpacked in ${deps_dir#"$root_dir"/}/mlx-cpu"
fi
