# `cmake --install` gives a tree that can be moved anywhere: the library finds oneDNN and LAPACK beside itself, and a program needs
# nothing but find_package(symbind). CUDA's libraries are not part of it: they are opened when a GPU first needs them, and
# the folders where this machine has them are searched after LD_LIBRARY_PATH.

include(CMakePackageConfigHelpers)

set(rpath $ORIGIN)
if(SYMBIND_HAVE_CUDA)
  symbind_cuda_rpath(cuda_folders)
  list(APPEND rpath ${cuda_folders})
endif()
set_target_properties(symbind PROPERTIES INSTALL_RPATH "${rpath}")

install(TARGETS symbind EXPORT symbindTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(SYMBIND_HAVE_ONEDNN)
  symbind_install_onednn()
endif()
if(SYMBIND_HAVE_LAPACK)
  symbind_install_lapack()
endif()

include(PublicHeaders)
foreach(header ${SYMBIND_PUBLIC_HEADERS})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "symbind/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/symbind/${folder}")
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/symbind)
install(EXPORT symbindTargets NAMESPACE symbind:: DESTINATION ${package_dir})
configure_package_config_file(cmake/symbindConfig.cmake.in symbindConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(symbindConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES "${CMAKE_CURRENT_BINARY_DIR}/symbindConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/symbindConfigVersion.cmake"
  DESTINATION ${package_dir})
