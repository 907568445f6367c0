# Finds the header of NCCL and sets SYMBIND_HAVE_NCCL. Only the header is used: libnccl.so.2 is opened when a store first needs
# it (kvstore/nccl). It is looked for beside CUDA, in the system and in .venv (PyPI: nvidia-nccl-cu12, nvidia-nccl-cu13);
# another is named by NCCL_ROOT. The texts of errors need NCCL 2.13.

set(SYMBIND_HAVE_NCCL OFF)
set(SYMBIND_NCCL_SUMMARY "off")
if(SYMBIND_NCCL)
  set(SYMBIND_NCCL_SUMMARY "not found")
  if(SYMBIND_HAVE_CUDA)
    file(GLOB packaged_nccl "${PROJECT_SOURCE_DIR}/.venv/lib/python*/site-packages/nvidia/nccl")
    find_path(SYMBIND_NCCL_INCLUDE_DIR nccl.h
      HINTS ${NCCL_ROOT} ENV NCCL_ROOT ${CUDAToolkit_INCLUDE_DIRS} ${packaged_nccl} PATH_SUFFIXES include)
    # For the run path.
    find_library(SYMBIND_NCCL_LIBRARY NAMES nccl libnccl.so.2
      HINTS ${NCCL_ROOT} ENV NCCL_ROOT ${CUDAToolkit_LIBRARY_DIR} ${packaged_nccl} PATH_SUFFIXES lib lib64)
    mark_as_advanced(SYMBIND_NCCL_INCLUDE_DIR SYMBIND_NCCL_LIBRARY)
    if(SYMBIND_NCCL_INCLUDE_DIR)
      file(STRINGS "${SYMBIND_NCCL_INCLUDE_DIR}/nccl.h" version REGEX "#define NCCL_(MAJOR|MINOR) ")
      string(REGEX MATCHALL "[0-9]+" version "${version}")
      list(JOIN version "." version)
      if(version VERSION_GREATER_EQUAL 2.13)
        set(SYMBIND_HAVE_NCCL ON)
        set(SYMBIND_NCCL_SUMMARY "${version}")
      endif()
    endif()
  else()
    set(SYMBIND_NCCL_SUMMARY "off (needs CUDA)")
  endif()
  if(NOT SYMBIND_HAVE_NCCL AND NOT SYMBIND_NCCL STREQUAL "AUTO")
    message(FATAL_ERROR "SYMBIND_NCCL is ON, but CUDA with the header of NCCL 2.13 or newer was not found: install libnccl-dev, or name its folder by NCCL_ROOT.")
  endif()
endif()

# symbind_compile_nccl(source...): only these include the header.
function(symbind_compile_nccl)
  if(SYMBIND_HAVE_NCCL)
    # A folder that the compiler searches anyway must not be named: the standard library's headers would not find C's.
    set(folders "${SYMBIND_NCCL_INCLUDE_DIR}" ${CUDAToolkit_INCLUDE_DIRS})
    list(REMOVE_ITEM folders ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES} /usr/include)
    list(TRANSFORM folders PREPEND "-isystem")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${folders}")
  endif()
endfunction()
