# symbind_target_defaults(target): the warnings and sanitizers shared by the library, its tests and its programs.
#
# No -march here: one binary serves every x86-64, and sources choose wider instructions per function at run time.

function(symbind_target_defaults target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CUDA_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wpedantic>
    # No code reads errno or traps after mathematics; loops with square roots and choices become vector code without them.
    $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno;-fno-trapping-math>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
  # Loops over vectors are inlined into functions for the processor at hand: how vectors are passed does not matter.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)
  endif()
  # GCC 12 warns of overlapping copies inside std::string that cannot happen.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(SYMBIND_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(NOT SYMBIND_OPENMP)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas>)
  endif()
  if(SYMBIND_SANITIZE)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SYMBIND_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
    target_link_options(${target} PRIVATE -fsanitize=${SYMBIND_SANITIZE})
  endif()
endfunction()

# symbind_compile_quickly(target): for code that does not run long, where the compiler's time matters more: tests are a
# quarter of a build. -Og compiles faster than -O1 and than -O0, whose code is larger.
function(symbind_compile_quickly target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Og>)
  endif()
endfunction()

# symbind_programs([INTERNALS name...]): every .cc in the current folder is a program of its own, named after its file. Those
# listed use more of the library than its public headers declare.
function(symbind_programs)
  cmake_parse_arguments(PARSE_ARGV 0 programs "" "" INTERNALS)
  file(GLOB program_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  foreach(source ${program_sources})
    cmake_path(GET source STEM name)
    add_executable(${name} ${source})
    symbind_target_defaults(${name})
    if(name IN_LIST programs_INTERNALS)
      target_link_libraries(${name} PRIVATE symbind_internals)
    else()
      target_link_libraries(${name} PRIVATE symbind::symbind)
    endif()
  endforeach()
endfunction()
