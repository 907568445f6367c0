# Finds the header of Open MPI and sets SYMBIND_HAVE_MPI. Only the header is used: libmpi.so.40, which Open MPI 4 and 5
# have, is opened when the first distributed store is created (kvstore/mpi), so a program starts where it is not installed.

set(SYMBIND_HAVE_MPI OFF)
set(SYMBIND_MPI_SUMMARY "off")
if(SYMBIND_MPI)
  set(SYMBIND_MPI_SUMMARY "not found")
  find_path(SYMBIND_MPI_INCLUDE_DIR mpi.h
    HINTS ${MPI_ROOT} ENV MPI_ROOT /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi /usr/lib64/openmpi
    PATH_SUFFIXES include)
  mark_as_advanced(SYMBIND_MPI_INCLUDE_DIR)
  if(SYMBIND_MPI_INCLUDE_DIR)
    symbind_header_version(version "${SYMBIND_MPI_INCLUDE_DIR}/mpi.h" "#define OMPI_(MAJOR|MINOR)_VERSION")
    if(version VERSION_GREATER_EQUAL 4)
      set(SYMBIND_HAVE_MPI ON)
      set(SYMBIND_MPI_SUMMARY "Open MPI ${version}")
    endif()
  endif()
  if(NOT SYMBIND_HAVE_MPI AND NOT SYMBIND_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "SYMBIND_MPI is ON, but the header of Open MPI 4 or 5 was not found: run tools/setup.sh, install libopenmpi-dev, or name its folder by MPI_ROOT.")
  endif()
endif()

# symbind_compile_mpi(source...): only these include the header.
function(symbind_compile_mpi)
  if(SYMBIND_HAVE_MPI)
    # Without the C++ interface of former versions.
    symbind_system_includes(options "${SYMBIND_MPI_INCLUDE_DIR}")
    set_source_files_properties(${ARGN} PROPERTIES
      COMPILE_OPTIONS "${options}" COMPILE_DEFINITIONS OMPI_SKIP_MPICXX)
  endif()
endfunction()
