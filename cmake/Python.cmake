# Is there a Python to build the package for? The one of .venv, where tools/setup.sh puts nanobind, comes first; another is
# named by Python_EXECUTABLE. A sanitized library cannot be loaded by a plain Python, so there the package is left out.

set(SYMBIND_HAVE_PYTHON OFF)
set(SYMBIND_PYTHON_SUMMARY off)
if(SYMBIND_PYTHON AND NOT SYMBIND_SANITIZE)
  if(NOT Python_EXECUTABLE AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python" AND NOT SKBUILD)
    set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  endif()
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  if(Python_FOUND)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
      OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
    if(status EQUAL 0)
      find_package(nanobind 2 CONFIG QUIET)
      if(NOT nanobind_FOUND)  # another major version is another interface: python/src/nanobind_versions.h
        find_package(nanobind 3 CONFIG QUIET)
      endif()
    endif()
    if(nanobind_FOUND)
      set(SYMBIND_HAVE_PYTHON ON)
      set(SYMBIND_PYTHON_SUMMARY "${Python_VERSION}")
    elseif(status EQUAL 0)
      set(SYMBIND_PYTHON_SUMMARY "off (nanobind 2 or 3 is needed)")
    endif()
  endif()
  if(NOT SYMBIND_HAVE_PYTHON AND NOT SYMBIND_PYTHON STREQUAL AUTO)
    message(FATAL_ERROR "SYMBIND_PYTHON is ON, but no Python 3.10 or newer with its headers and nanobind 2 or 3 was found: "
                        "run tools/setup.sh, or set Python_EXECUTABLE.")
  endif()
endif()
