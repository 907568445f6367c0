# What a wheel with CUDA is compiled for, and the run paths it gets, by configuring alone: building one takes too long. Its
# code is that of the installed library, which tests/install searches for paths.
#
# usage: cmake -DSOURCE=TREE -DFOLDER=EMPTY -DGENERATOR=NAME -DCXX=COMPILER -DNVCC=COMPILER -DPYTHON=EXECUTABLE -P configure.cmake
cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE "${FOLDER}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env --unset=CUDAARCHS "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${FOLDER}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CUDA_COMPILER=${NVCC}" "-DPython_EXECUTABLE=${PYTHON}" -DSKBUILD=2 -DSYMBIND_CUDA=ON
    -DSYMBIND_CUDNN=OFF -DSYMBIND_BUILD_TESTS=OFF -DSYMBIND_BUILD_EXAMPLES=OFF -DSYMBIND_BUILD_BENCH=OFF
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "${output}")
endif()

load_cache("${FOLDER}" READ_WITH_PREFIX cached_ CMAKE_CUDA_ARCHITECTURES)
if(NOT cached_CMAKE_CUDA_ARCHITECTURES STREQUAL "80-real;90")
  message(SEND_ERROR "compiled for \"${cached_CMAKE_CUDA_ARCHITECTURES}\"")
endif()

file(STRINGS "${FOLDER}/cmake_install.cmake" lines REGEX "NEW_RPATH")
list(LENGTH lines count)
if(NOT count EQUAL 2)  # libsymbind and the extension
  message(SEND_ERROR "${count} libraries have run paths")
endif()
foreach(line ${lines})
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" path "${line}")
  string(REPLACE ":" ";" path "${path}")
  foreach(folder ${path})
    if(NOT folder MATCHES "^\\\\\\$ORIGIN(/|$)")
      message(SEND_ERROR "a run path names ${folder}")
    endif()
  endforeach()
endforeach()
