# What a build can be asked for. Everything has a sensible default: plain `cmake --preset release` is enough.

set(SYMBIND_ONEDNN AUTO CACHE STRING "oneDNN kernels on the CPU: AUTO (where found), ON (required) or OFF")
set(SYMBIND_CUDA AUTO CACHE STRING "the GPU backend: AUTO (where CUDA is found), ON (required) or OFF")
set(SYMBIND_PYTHON AUTO CACHE STRING "the Python package: AUTO (where nanobind is found), ON (required) or OFF")
set(SYMBIND_IMAGES AUTO CACHE STRING "JPEG and PNG images: AUTO (where libjpeg and libpng are found), ON (required) or OFF")
set(SYMBIND_MPI AUTO CACHE STRING "stores over several workers: AUTO (where Open MPI is found), ON (required) or OFF")
foreach(option SYMBIND_ONEDNN SYMBIND_CUDA SYMBIND_PYTHON SYMBIND_IMAGES SYMBIND_MPI)
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
endforeach()
option(SYMBIND_OPENMP "run CPU kernels on several threads" ON)
option(SYMBIND_WERROR "treat warnings in our own sources as errors" ${PROJECT_IS_TOP_LEVEL})
set(SYMBIND_SANITIZE "" CACHE STRING "sanitizers to build with, as given to -fsanitize: address,undefined or thread")

option(SYMBIND_FUZZ "build the fuzzers of tests/fuzz (with clang)" OFF)
option(SYMBIND_BUILD_TESTS "build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SYMBIND_BUILD_EXAMPLES "build the programs in examples/" ${PROJECT_IS_TOP_LEVEL})
option(SYMBIND_BUILD_BENCH "build the programs in bench/" ${PROJECT_IS_TOP_LEVEL})

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "kind of build" FORCE)
endif()

# Paths below the source folder are relative in the cache, so that a second clone finds what the first one compiled.
find_program(SYMBIND_CCACHE ccache DOC "compiler cache, used where present")
mark_as_advanced(SYMBIND_CCACHE)
if(SYMBIND_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(launcher "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${SYMBIND_CCACHE}")
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
endif()
