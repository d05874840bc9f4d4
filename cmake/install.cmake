include(GNUInstallDirs)
# Libraries that only this program uses. MLX keeps the layout of its package,
# since libmlx.so looks for its BLAS in ../../mlx_cpu.libs, relative to itself.
set(private_libraries lib/mlxcel)
set_target_properties(mlxcel_app PROPERTIES INSTALL_RPATH
    "$ORIGIN/../${private_libraries};$ORIGIN/../${private_libraries}/mlx/lib")
# An RPATH, not a RUNPATH: it also holds for what those libraries need.
target_link_options(mlxcel_app PRIVATE -Wl,--disable-new-dtags)
install(TARGETS mlxcel_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/mlxcel)
if(MLXCEL_GRAPH)
  install(FILES ${MLXCEL_MLX_DIR}/lib/libmlx.so
      DESTINATION ${private_libraries}/mlx/lib)
  if(EXISTS ${MLXCEL_MLX_DIR}/../mlx_cpu.libs)
    install(DIRECTORY ${MLXCEL_MLX_DIR}/../mlx_cpu.libs
        DESTINATION ${private_libraries})
  endif()
endif()
