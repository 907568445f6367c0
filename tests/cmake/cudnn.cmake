# What a build says where cuDNN is missing, and where it is found.
#
# usage: cmake -DSOURCE=TREE -DFOLDER=EMPTY -P cudnn.cmake
cmake_minimum_required(VERSION 3.22)

# One search, in a process of its own since it may fail: prints what was found.
if(DEFINED SEARCHED)
  set(PROJECT_SOURCE_DIR "${SEARCHED}")
  set(CMAKE_FIND_LIBRARY_PREFIXES lib)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
  include("${SOURCE}/cmake/Headers.cmake")
  include("${SOURCE}/cmake/Cudnn.cmake")
  symbind_find_cudnn()
  string(REPLACE "${FOLDER}/" "" found "${SYMBIND_CUDNN_INCLUDE_DIR}, ${SYMBIND_CUDNN_LIBRARY}")
  message("${SYMBIND_HAVE_CUDNN}: ${SYMBIND_CUDNN_SUMMARY}, ${found}")
  return()
endif()

# expect(what status pattern NAME=VALUE...): how the search ends, and what it prints.
function(expect what status pattern)
  set(definitions)
  foreach(definition ${ARGN})
    list(APPEND definitions "-D${definition}")
  endforeach()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env --unset=CUDNN_ROOT --unset=CMAKE_PREFIX_PATH --unset=CMAKE_INCLUDE_PATH
      --unset=CMAKE_LIBRARY_PATH "PATH=${FOLDER}" "${CMAKE_COMMAND}" "-DSOURCE=${SOURCE}" "-DFOLDER=${FOLDER}" "-DSEARCHED=${FOLDER}/tree"
      -DCUDAToolkit_VERSION_MAJOR=12 -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF ${definitions}
      -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
    RESULT_VARIABLE got_status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(got_status)
    set(got_status 1)
  endif()
  string(REGEX REPLACE "[ \n]+" " " text "${text}")  # messages are wrapped
  if(NOT got_status EQUAL status OR NOT text MATCHES "${pattern}")
    message(SEND_ERROR "${what}: expected status ${status} and \"${pattern}\", got ${got_status} and \"${text}\"")
  endif()
endfunction()

file(REMOVE_RECURSE "${FOLDER}/tree" "${FOLDER}/site")
set(missing "cuDNN 9 was not found.*many times slower.*pip install nvidia-cudnn-cu12")
expect("a tree without cuDNN" 0 "Warning.*${missing}.*-DSYMBIND_CUDNN=OFF.*OFF: without cuDNN" SYMBIND_CUDNN=AUTO)
expect("a wheel without cuDNN" 1 "Error.*${missing}.*cmake.define.SYMBIND_CUDNN=OFF" SYMBIND_CUDNN=AUTO SKBUILD=2)
expect("cuDNN is asked for" 1 "Error.*SYMBIND_CUDNN is ON. ${missing}" SYMBIND_CUDNN=ON)
expect("cuDNN is not wanted" 0 "^OFF: without cuDNN" SYMBIND_CUDNN=OFF SKBUILD=2)

# PyPI's package has the library under its full name only.
set(package nvidia/cudnn)
foreach(site tree/.venv/lib/python3.11/site-packages site)
  file(WRITE "${FOLDER}/${site}/${package}/include/cudnn_graph.h" "")
  file(WRITE "${FOLDER}/${site}/${package}/lib/libcudnn.so.9" "")
endforeach()
expect("a tree with PyPI's package" 0 "^ON: with cuDNN, tree/[^,]*/include, .*/lib/libcudnn.so.9" SYMBIND_CUDNN=AUTO)
file(REMOVE_RECURSE "${FOLDER}/tree")
expect("a wheel's Python with PyPI's package" 0 "^ON: with cuDNN, site/" SYMBIND_CUDNN=AUTO SKBUILD=2
  "SYMBIND_SITE_FOLDERS=${FOLDER}/site")
expect("a folder that is named" 0 "^ON: with cuDNN, site/" SYMBIND_CUDNN=ON "CUDNN_ROOT=${FOLDER}/site/${package}")
file(REMOVE "${FOLDER}/site/${package}/lib/libcudnn.so.9")
expect("a header without the library" 1 "${missing}" SYMBIND_CUDNN=ON "CUDNN_ROOT=${FOLDER}/site/${package}")
