# generated/mlxcel_version.h: version and commit, rewritten only on change.
execute_process(
    COMMAND git -C ${CMAKE_SOURCE_DIR} describe --always --dirty --abbrev=9
            --exclude=*
    OUTPUT_VARIABLE MLXCEL_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT MLXCEL_COMMIT)
  set(MLXCEL_COMMIT "unknown")
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/mlxcel_version.h.in
    ${CMAKE_BINARY_DIR}/generated/mlxcel_version.h)
