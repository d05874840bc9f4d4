include(GNUInstallDirs)
# The program finds libmlx.so in ../lib/mlxcel, relative to itself.
set_target_properties(mlxcel_app PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/mlxcel")
install(TARGETS mlxcel_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(MLXCEL_GRAPH)
  # libmlx.so looks for its BLAS in ../../mlx_cpu.libs, relative to itself.
  install(FILES ${MLXCEL_MLX_DIR}/lib/libmlx.so
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/mlxcel)
  if(EXISTS ${MLXCEL_MLX_DIR}/../mlx_cpu.libs)
    install(DIRECTORY ${MLXCEL_MLX_DIR}/../mlx_cpu.libs
        DESTINATION .)
  endif()
endif()
