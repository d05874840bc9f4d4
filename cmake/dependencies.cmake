# Third-party packages. fmt and spdlog are used header-only, PCRE2 and utf8proc
# from their static archives, so that a built program needs little on its host.
set(deps_hint ${MLXCEL_DEPS_DIR})
if(deps_hint)
  list(PREPEND CMAKE_PREFIX_PATH ${deps_hint})
endif()
find_package(Threads REQUIRED)

function(mlxcel_header_library name header)
  find_path(${name}_INCLUDE_DIR ${header} HINTS ${deps_hint}/include REQUIRED)
  add_library(dep_${name} INTERFACE)
  target_include_directories(dep_${name} SYSTEM INTERFACE
      ${${name}_INCLUDE_DIR})
endfunction()

function(mlxcel_binary_library name header)
  mlxcel_header_library(${name} ${header})
  find_library(${name}_LIBRARY NAMES ${ARGN} HINTS ${deps_hint}/lib REQUIRED)
  target_link_libraries(dep_${name} INTERFACE ${${name}_LIBRARY})
endfunction()

mlxcel_header_library(json nlohmann/json.hpp)
mlxcel_header_library(cli11 CLI/CLI.hpp)
mlxcel_header_library(fmt fmt/format.h)
target_compile_definitions(dep_fmt INTERFACE FMT_HEADER_ONLY)
mlxcel_header_library(spdlog spdlog/spdlog.h)
target_compile_definitions(dep_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(dep_spdlog INTERFACE dep_fmt)
mlxcel_binary_library(simdjson simdjson.h simdjson)
mlxcel_binary_library(pcre2 pcre2.h libpcre2-8.a)
target_compile_definitions(dep_pcre2 INTERFACE
    PCRE2_STATIC PCRE2_CODE_UNIT_WIDTH=8)
mlxcel_binary_library(utf8proc utf8proc.h libutf8proc.a)
target_compile_definitions(dep_utf8proc INTERFACE UTF8PROC_STATIC)

if(MLXCEL_DOWNLOAD)
  mlxcel_binary_library(curl curl/curl.h curl)
  mlxcel_binary_library(openssl openssl/evp.h crypto)
  find_library(ssl_LIBRARY ssl HINTS ${deps_hint}/lib REQUIRED)
  target_link_libraries(dep_openssl INTERFACE ${ssl_LIBRARY})
endif()

if(MLXCEL_GRAPH)
  find_package(MLX CONFIG REQUIRED PATHS ${MLXCEL_MLX_DIR} NO_DEFAULT_PATH)
endif()
