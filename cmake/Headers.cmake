# Headers of optional libraries that are opened at run time.

# symbind_header_version(OUT header pattern): "4.1" from the lines of a header that match the pattern, two #defines.
function(symbind_header_version out header pattern)
  file(STRINGS "${header}" version REGEX "${pattern}")
  string(REGEX MATCHALL "[0-9]+" version "${version}")
  list(JOIN version "." version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# symbind_system_includes(OUT folder...): the compiler's options for them. A folder that the compiler searches anyway is left
# out: if it were named, the headers of the standard library would not find those of C.
function(symbind_system_includes out)
  set(folders ${ARGN})
  list(REMOVE_ITEM folders ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES} /usr/include)
  list(TRANSFORM folders PREPEND "-isystem")
  set(${out} "${folders}" PARENT_SCOPE)
endfunction()

# symbind_find_beside_cuda(NAME package header library...): sets SYMBIND_NAME_INCLUDE_DIR and SYMBIND_NAME_LIBRARY. Looked for in
# NAME_ROOT, beside CUDA, among Python's packages (PyPI: nvidia-package-cu13; in .venv, or those of a wheel's Python) and in the
# system.
macro(symbind_find_beside_cuda name package header)
  file(GLOB packaged "${PROJECT_SOURCE_DIR}/.venv/lib/python*/site-packages/nvidia/${package}")
  foreach(folder ${SYMBIND_SITE_FOLDERS})
    list(APPEND packaged "${folder}/nvidia/${package}")
  endforeach()
  find_path(SYMBIND_${name}_INCLUDE_DIR ${header}
    HINTS ${${name}_ROOT} ENV ${name}_ROOT ${CUDAToolkit_INCLUDE_DIRS} ${packaged} PATH_SUFFIXES include)
  find_library(SYMBIND_${name}_LIBRARY NAMES ${ARGN} NAMES_PER_DIR
    HINTS ${${name}_ROOT} ENV ${name}_ROOT ${CUDAToolkit_LIBRARY_DIR} ${packaged} PATH_SUFFIXES lib lib64)
  mark_as_advanced(SYMBIND_${name}_INCLUDE_DIR SYMBIND_${name}_LIBRARY)
endmacro()
