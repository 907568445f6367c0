# Finds the header of NCCL and sets SYMBIND_HAVE_NCCL. Only the header is used: libnccl.so.2 is opened when a store first needs
# it (kvstore/nccl). It is looked for beside CUDA, in the system and in .venv (PyPI: nvidia-nccl-cu12, nvidia-nccl-cu13);
# another is named by NCCL_ROOT. The texts of errors need NCCL 2.13.

set(SYMBIND_HAVE_NCCL OFF)
set(SYMBIND_NCCL_SUMMARY "off")
if(SYMBIND_NCCL)
  set(SYMBIND_NCCL_SUMMARY "not found")
  if(SYMBIND_HAVE_CUDA)
    symbind_find_beside_cuda(NCCL nccl nccl.h nccl libnccl.so.2)  # the library for the run path
    if(SYMBIND_NCCL_INCLUDE_DIR)
      symbind_header_version(version "${SYMBIND_NCCL_INCLUDE_DIR}/nccl.h" "#define NCCL_(MAJOR|MINOR) ")
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
    symbind_system_includes(options "${SYMBIND_NCCL_INCLUDE_DIR}" ${CUDAToolkit_INCLUDE_DIRS})
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}")
  endif()
endfunction()
