# Finds LAPACK: OpenBLAS as the PyPI package scipy-openblas32 has it, one file without dependencies whose functions have
# names of their own. `make` puts the package into .venv in the tree; another file is named by SYMBIND_LAPACK_LIBRARY. The
# file is opened when a matrix is first factorized (backend/cpu/lapack.cc): nothing here links against it, and without it
# everything else works.

set(SYMBIND_HAVE_LAPACK OFF)
set(SYMBIND_LAPACK_SUMMARY "not found")
if(SKBUILD)
  symbind_packaged_file(SYMBIND_LAPACK_LIBRARY scipy-openblas32 libscipy_openblas.so)
else()
  file(GLOB packaged_openblas "${PROJECT_SOURCE_DIR}/.venv/lib/python*/site-packages/scipy_openblas32/lib")
  find_library(SYMBIND_LAPACK_LIBRARY NAMES scipy_openblas HINTS ${packaged_openblas})
  mark_as_advanced(SYMBIND_LAPACK_LIBRARY)
endif()
if(SYMBIND_LAPACK_LIBRARY)
  set(SYMBIND_HAVE_LAPACK ON)
  set(SYMBIND_LAPACK_SUMMARY "OpenBLAS")
  cmake_path(GET SYMBIND_LAPACK_LIBRARY PARENT_PATH SYMBIND_LAPACK_FOLDER)
endif()

# The library is opened by whoever holds the code: a shared library, or a program that links the archive.
function(symbind_find_lapack_from library archive)
  if(SYMBIND_HAVE_LAPACK)
    set_property(TARGET ${library} APPEND PROPERTY BUILD_RPATH "${SYMBIND_LAPACK_FOLDER}")
    target_link_options(${archive} INTERFACE "LINKER:-rpath,${SYMBIND_LAPACK_FOLDER}")
  endif()
endfunction()

# symbind_lapack_licence(OUT): the file of the package; empty where there is none.
function(symbind_lapack_licence out)
  file(GLOB licences
    "${SYMBIND_LAPACK_FOLDER}/../../scipy_openblas32-*.dist-info/licenses/LICENSE.txt"
    "${SYMBIND_LAPACK_FOLDER}/../../scipy_openblas32-*.dist-info/LICENSE.txt")
  list(POP_FRONT licences first)
  set(${out} "${first}" PARENT_SCOPE)
endfunction()

# Puts it beside the library, so that the installed tree is self-contained, and its licence with it.
function(symbind_install_lapack)
  install(PROGRAMS "${SYMBIND_LAPACK_LIBRARY}" DESTINATION ${CMAKE_INSTALL_LIBDIR})
  symbind_lapack_licence(licence)
  if(licence)
    install(FILES "${licence}" DESTINATION ${CMAKE_INSTALL_DOCDIR}/openblas)
  endif()
endfunction()
