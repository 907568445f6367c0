# Sources that are part of the library as text, for a compiler that runs when a plan is built.

# symbind_embed_sources(FILE source...): writes FILE, a line {"path", R"text(…)text"}, for each source under the project's
# root. Nothing is recompiled if they have not changed.
function(symbind_embed_sources file)
  set(all)
  foreach(source ${ARGN})
    set(path "${PROJECT_SOURCE_DIR}/${source}")
    file(READ "${path}" text)
    string(APPEND all "{\"${source}\", R\"text(${text})text\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  endforeach()
  file(GENERATE OUTPUT "${file}" CONTENT "${all}")
endfunction()
