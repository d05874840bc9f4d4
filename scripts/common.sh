# Shared by the scripts beside it: source it, don't run it.

set -euo pipefail

root_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps_dir=$root_dir/.deps

say() {
  printf '[%s] %s\n' "$(basename "$0" .sh)" "$*"
}

die() {
  printf '[%s] error: %s\n' "$(basename "$0" .sh)" "$*" >&2
  exit 1
}

# Runs a command as root, through sudo where the caller is not root.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "not root and sudo is missing: run as root: $*"
  fi
}

is_installed() {
  dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

# need_packages NAME...: installs the Debian packages that are missing.
need_packages() {
  local missing=() name
  for name in "$@"; do
    is_installed "$name" || missing+=("$name")
  done
  if [ ${#missing[@]} = 0 ]; then
    say "Debian packages: all present"
    return
  fi
  say "Debian packages: installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# make_venv DIR: a virtual environment of the system's own Python, which has
# the ensurepip that Debian's python3-venv brings (another python3 may come
# first on PATH). A half-made one is made again.
make_venv() {
  local dir=$1 python=/usr/bin/python3
  [ -x "$dir/bin/pip" ] && return
  [ -x "$python" ] || python=python3
  rm -rf "$dir"
  "$python" -m venv "$dir" || die "cannot make a virtual environment in $dir"
}

# install_pinned DIR FILE [CONSTRAINTS]: installs a requirements file into a
# virtual environment, once per content of the files.
install_pinned() {
  local dir=$1 file=$2 sum
  sum=$(cat "${@:2}" | sha256sum)
  [ -f "$dir/.installed" ] && [ "$(cat "$dir/.installed")" = "$sum" ] && return
  make_venv "$dir"
  "$dir/bin/pip" install --quiet --disable-pip-version-check -r "$file"
  printf '%s\n' "$sum" >"$dir/.installed"
}

# fetch_pypi NAME VERSION SHA256 OUT_DIR [pip options]: downloads one file of
# a package from PyPI and checks its hash; leaves it alone in OUT_DIR.
fetch_pypi() {
  local name=$1 version=$2 hash=$3 out=$4 list
  shift 4
  make_venv "$deps_dir/py"
  mkdir -p "$out"
  list=$(mktemp)
  printf '%s==%s --hash=sha256:%s\n' "$name" "$version" "$hash" >"$list"
  "$deps_dir/py/bin/pip" download --quiet --disable-pip-version-check \
    --no-deps --no-cache-dir --require-hashes --dest "$out" "$@" -r "$list" ||
    { rm -f "$list"; die "cannot download $name $version from PyPI"; }
  rm -f "$list"
}

# llama.cpp as the source distribution of llama-cpp-python on PyPI carries it:
# its program is a peer, its test data are published files.
llama_cpp_version=0.3.36
llama_cpp_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
peers_dir=${MLXCEL_PEERS_DIR:-$HOME/.cache/mlxcel-peers}

# fetch_llama_cpp OUT_DIR PATTERN...: unpacks what matches in its tree.
fetch_llama_cpp() {
  local out=$1 sdist status=0
  local tree=llama_cpp_python-$llama_cpp_version/vendor/llama.cpp
  shift
  need_packages python3-venv
  make_venv "$deps_dir/py"
  # pip reads an sdist's metadata through its build backend.
  "$deps_dir/py/bin/pip" install --quiet --disable-pip-version-check \
    "scikit-build-core==1.1.2"
  sdist=$(mktemp -d)
  mkdir -p "$out"
  fetch_pypi llama-cpp-python "$llama_cpp_version" "$llama_cpp_sha256" \
    "$sdist" --no-binary llama-cpp-python --no-build-isolation
  tar xzf "$sdist"/llama_cpp_python-*.tar.gz -C "$out" --strip-components=3 \
    --wildcards "${@/#/$tree/}" || status=$?
  rm -rf "$sdist"
  return $status
}
