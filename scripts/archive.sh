#!/usr/bin/env bash
# archive.sh BUILD_DIR: packs an installed tree that runs from any folder on a
# host with glibc alone: dist/mlxcel-VERSION-linux-ARCH[-PRESET].tar.xz.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build_dir=$1
need_packages xz-utils
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' \
  "$root_dir/$build_dir/CMakeCache.txt")
preset=$(basename "$build_dir")
name=mlxcel-$version-linux-$(uname -m)
[ "$preset" = release ] || name=$name-$preset
stage=$root_dir/$build_dir/archive
top=$stage/$name
own_libraries=$top/lib/mlxcel
licences=$top/share/doc/mlxcel/licences
# Linked into the program or copied beside it.
packages=(libsimdjson-dev nlohmann-json3-dev libcli11-dev libspdlog-dev
  libfmt-dev libpcre2-dev libutf8proc-dev libstdc++6)

# Libraries outside the tree that the program loads, those of glibc aside: one
# path a line. Those in the tree find each other by the program's RPATH alone.
foreign_libraries() {
  ldd "$top"/bin/* |
    awk -v own="$stage/" '
      $2 != "=>" || $3 !~ /^\// || index($3, own) == 1 { next }
      $3 ~ /\/(libc|libm|libdl|librt|libpthread|libresolv)\.so/ { next }
      { print $3 }' |
    sort -u
}

# The Debian package that a library comes from. Packages know it by the path
# before /lib became a link to /usr/lib, or by that behind it.
package_of() {
  local path
  path=$(readlink -f "$1")
  { dpkg -S "$path" || dpkg -S "${path#/usr}"; } 2>/dev/null |
    sed -n '1s/:.*//p' | grep . || die "no package has $1"
}

rm -rf "$stage"
say "installing in $build_dir/archive"
cmake --install "$root_dir/$build_dir" --prefix "$top" --strip >/dev/null
cp "$root_dir/LICENSE" "$root_dir/README.md" "$top/"
mkdir -p "$own_libraries" "$licences"
for package in "${packages[@]}"; do
  cp -L "/usr/share/doc/$package/copyright" "$licences/$package"
done
cp "$deps_dir"/mlx-cpu/mlx_cpu-*.dist-info/licenses/LICENSE "$licences/mlx"
for library in $(foreign_libraries); do
  say "adding $(basename "$library")"
  cp -L "$library" "$own_libraries/"
  package=$(package_of "$library")
  cp -L "/usr/share/doc/$package/copyright" "$licences/$package"
done

mkdir -p "$root_dir/dist"
tar -C "$stage" --owner=0 --group=0 --sort=name -cJf \
  "$root_dir/dist/$name.tar.xz.part" "$name"
mv "$root_dir/dist/$name.tar.xz.part" "$root_dir/dist/$name.tar.xz"

say "trying it from another folder"
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
tar -C "$trial" -xJf "$root_dir/dist/$name.tar.xz"
env -i PATH=/usr/bin:/bin "$trial/$name/bin/mlxcel" --version ||
  die "the packed program does not start"
stage=$trial top=$trial/$name
left=$(foreign_libraries)
[ -z "$left" ] || die "the packed program also needs: $left"
say "ready: dist/$name.tar.xz ($(du -h "$root_dir/dist/$name.tar.xz" | cut -f1))"
