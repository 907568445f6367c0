# Lists of operator families for the preprocessor, made from the two headers that name them (symbind/ops/all.h and
# internal.h) and from which backends have a file of that name:
#   symbind/families/ops.inc, cpu.inc and cuda.inc, a line SYMBIND_FAMILY(name) each.

# symbind_listed_families(OUT HEADER): the families that symbind/ops/HEADER.h includes.
function(symbind_listed_families out header)
  set(path "${PROJECT_SOURCE_DIR}/symbind/ops/${header}.h")
  file(STRINGS "${path}" lines REGEX "^#include \"symbind/ops/")
  list(TRANSFORM lines REPLACE "^#include \"symbind/ops/(.*)\\.h\"$" "\\1")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  set(${out} ${lines} PARENT_SCOPE)
endfunction()

# symbind_write_families(FOLDER): writes them under FOLDER.
function(symbind_write_families folder)
  symbind_listed_families(public all)
  symbind_listed_families(internal internal)
  set(families ${public} ${internal})
  symbind_write_family_list("${folder}" ops ops "${families}")
  symbind_write_family_list("${folder}" cpu backend/cpu "${families}")
  symbind_write_family_list("${folder}" cuda backend/cuda "${families}")
endfunction()

# Those of the families that have a source in the directory. Nothing is recompiled if the list has not changed.
function(symbind_write_family_list folder name directory families)
  set(text)
  foreach(family ${families})
    file(GLOB sources CONFIGURE_DEPENDS
      "${PROJECT_SOURCE_DIR}/symbind/${directory}/${family}.cc" "${PROJECT_SOURCE_DIR}/symbind/${directory}/${family}.cu")
    if(sources)
      string(APPEND text "SYMBIND_FAMILY(${family})\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${folder}/symbind/families/${name}.inc" CONTENT "${text}" @ONLY)
endfunction()
