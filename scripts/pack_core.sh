#!/usr/bin/env bash
# pack_core.sh [FOLDER]: copies the headers and libraries that the program and
# its tests need from this machine's Debian packages into FOLDER (.deps/core),
# so that a host without them builds with
#   cmake --preset core -DMLXCEL_DEPS_DIR=FOLDER
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out=${1:-$deps_dir/core}
arch_lib=/usr/lib/$(gcc -print-multiarch)
headers=(nlohmann CLI fmt spdlog gtest simdjson.h pcre2.h utf8proc.h)
archives=(libpcre2-8.a libutf8proc.a libgtest.a libgtest_main.a)

need_packages g++ libsimdjson-dev nlohmann-json3-dev libcli11-dev \
  libspdlog-dev libfmt-dev libpcre2-dev libutf8proc-dev libgtest-dev

stage=$out.new
rm -rf "$stage"
mkdir -p "$stage/include" "$stage/lib"
for header in "${headers[@]}"; do
  [ -e "/usr/include/$header" ] || die "/usr/include/$header is missing"
  cp -rL "/usr/include/$header" "$stage/include/"
done
for archive in "${archives[@]}"; do
  cp -L "$arch_lib/$archive" "$stage/lib/"
done

# Debian has simdjson as a shared library only. It is found by its link name
# when building and by its soname when running; no links, since some ways of
# copying drop them.
soname=$(objdump -p "$arch_lib/libsimdjson.so" | awk '$1 == "SONAME" {print $2}')
cp -L "$arch_lib/libsimdjson.so" "$stage/lib/libsimdjson.so"
cp -L "$arch_lib/libsimdjson.so" "$stage/lib/$soname"

# Debian's own description of GoogleTest names places that are not packed.
mkdir -p "$stage/lib/cmake/GTest"
cat >"$stage/lib/cmake/GTest/GTestConfig.cmake" <<'CMAKE'
get_filename_component(prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(name gtest gtest_main)
  add_library(GTest::${name} STATIC IMPORTED)
  set_target_properties(GTest::${name} PROPERTIES
      IMPORTED_LOCATION "${prefix}/lib/lib${name}.a"
      INTERFACE_INCLUDE_DIRECTORIES "${prefix}/include")
endforeach()
set_target_properties(GTest::gtest_main PROPERTIES
    INTERFACE_LINK_LIBRARIES GTest::gtest)
CMAKE

rm -rf "$out"
mv "$stage" "$out"
say "ready: $out ($(du -sh "$out" | cut -f1))"
