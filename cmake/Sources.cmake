# Which files make the library. Folders are globbed, so a new source needs no line here; a folder that does not exist
# contributes nothing.

# symbind_sources(OUT folder...): the sources under symbind/<folder>, at any depth.
function(symbind_sources out)
  set(found)
  foreach(folder ${ARGN})
    file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/symbind/${folder}/*.cc")
    list(APPEND found ${files})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# symbind_twin_sources(OUT real stub use_real): an optional library is a folder with a twin of stubs; exactly one of the
# two is linked, and nothing else in the library knows which.
function(symbind_twin_sources out real stub use_real)
  if(use_real)
    symbind_sources(found ${real})
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/symbind/${real}/*.cu")
    list(APPEND found ${kernels})
  else()
    symbind_sources(found ${stub})
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()
