# Finds oneDNN 3 and sets SYMBIND_HAVE_ONEDNN. `make` puts the PyPI package into .venv in the tree; another installation
# is named by dnnl_ROOT or CMAKE_PREFIX_PATH, and wins.

set(SYMBIND_HAVE_ONEDNN OFF)
set(SYMBIND_ONEDNN_SUMMARY "off")
if(SYMBIND_ONEDNN)
  find_package(dnnl 3 CONFIG QUIET HINTS "${PROJECT_SOURCE_DIR}/.venv")
  if(dnnl_FOUND)
    set(SYMBIND_HAVE_ONEDNN ON)
    set(SYMBIND_ONEDNN_SUMMARY "${dnnl_VERSION}")
  elseif(SYMBIND_ONEDNN STREQUAL "AUTO")
    set(SYMBIND_ONEDNN_SUMMARY "not found")
  else()
    message(FATAL_ERROR "SYMBIND_ONEDNN is ON, but oneDNN 3 was not found: run tools/setup.sh, or set dnnl_ROOT.")
  endif()
endif()

function(symbind_link_onednn target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:DNNL::dnnl>)
endfunction()

# Puts oneDNN beside the library under its soname, so that the installed tree is self-contained, and its licence with it.
function(symbind_install_onednn)
  install(FILES $<TARGET_FILE:DNNL::dnnl>
    DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RENAME $<TARGET_SONAME_FILE_NAME:DNNL::dnnl>
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  cmake_path(SET prefix NORMALIZE "${dnnl_DIR}/../../..")
  foreach(notice LICENSE THIRD-PARTY-PROGRAMS)
    install(FILES "${prefix}/share/doc/onednn/${notice}" DESTINATION ${CMAKE_INSTALL_DOCDIR}/onednn OPTIONAL)
  endforeach()
endfunction()
