# The case of `pip install .` (scikit-build-core sets SKBUILD): libraries come as Python packages, and are found by what
# those packages say they installed, wherever the isolated environment is. What is not there is looked for as always.

# symbind_packaged_file(OUT package file): the path of a file that a Python package installed; empty if there is none.
function(symbind_packaged_file out package file)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "
import importlib.metadata, os, sys
files = importlib.metadata.files(sys.argv[1]) or []
found = [os.path.realpath(file.locate()) for file in files if str(file).endswith('/' + sys.argv[2])]
print(found[0] if found else '')" ${package} ${file}
    OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${out} "${path}" PARENT_SCOPE)
endfunction()

# The folders of the packages of the Python that Symbind is installed for, which pip hides from a build: cuDNN and NCCL
# (nvidia-cudnn-cu13, nvidia-nccl-cu13) are used from there, as they will be when the package runs.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c "
import site, sysconfig
folders = [sysconfig.get_path('purelib'), *site.getsitepackages(), site.getusersitepackages()]
print(';'.join(dict.fromkeys(folders)))"
  OUTPUT_VARIABLE SYMBIND_SITE_FOLDERS OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)

if(NOT dnnl_ROOT)
  symbind_packaged_file(config onednn-devel-cpu-gomp dnnl-config.cmake)
  if(config)
    cmake_path(SET dnnl_ROOT NORMALIZE "${config}/../../../..")
  endif()
endif()

symbind_packaged_file(header nlohmann-json nlohmann/json.hpp)
if(header)
  cmake_path(SET include NORMALIZE "${header}/../..")
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  set_target_properties(nlohmann_json::nlohmann_json PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${include}")
endif()

symbind_packaged_file(SYMBIND_PACKAGED_ZLIB cmeel-zlib libz.so.1)
if(SYMBIND_PACKAGED_ZLIB)
  symbind_packaged_file(header cmeel-zlib include/zlib.h)
  cmake_path(GET header PARENT_PATH ZLIB_INCLUDE_DIR)
  cmake_path(REPLACE_FILENAME SYMBIND_PACKAGED_ZLIB libz.so OUTPUT_VARIABLE ZLIB_LIBRARY)
endif()

# What the wheel holds beside the .py files, which scikit-build-core takes itself: the extension, the stubs, and in
# symbind/lib the libraries, which find each other there. A wheel has no links, so each library goes in once, under the
# name it is loaded by.
function(symbind_install_wheel)
  set(rpath $ORIGIN)
  if(SYMBIND_HAVE_CUDA)
    # CUDA's libraries as Python packages (nvidia-cudnn-cu13 and the like). Others are found by the system's loader, or where
    # CUDA is usually installed (backend/cuda/cuda_library.h): the folders of the building machine mean nothing elsewhere.
    foreach(package cu13 cudnn cublas cusolver cufft cuda_nvrtc nccl)
      list(APPEND rpath "$ORIGIN/../../nvidia/${package}/lib")
    endforeach()
  endif()
  set_target_properties(symbind PROPERTIES INSTALL_RPATH "${rpath}")
  get_target_property(soversion symbind SOVERSION)
  set_target_properties(symbind PROPERTIES VERSION ${soversion})
  install(TARGETS symbind LIBRARY DESTINATION symbind/lib COMPONENT python NAMELINK_SKIP)
  symbind_packaged_file(nlohmann_licence nlohmann-json LICENSE)
  if(SYMBIND_HAVE_ONEDNN)
    install(FILES $<TARGET_FILE:DNNL::dnnl> DESTINATION symbind/lib RENAME $<TARGET_SONAME_FILE_NAME:DNNL::dnnl>
      COMPONENT python)
    symbind_packaged_file(onednn_licence onednn-devel-cpu-gomp onednn/LICENSE)
    symbind_packaged_file(onednn_third_parties onednn-devel-cpu-gomp onednn/THIRD-PARTY-PROGRAMS)
  endif()
  if(SYMBIND_PACKAGED_ZLIB)
    install(FILES "${SYMBIND_PACKAGED_ZLIB}" DESTINATION symbind/lib RENAME libz.so.1 COMPONENT python)
    symbind_packaged_file(zlib_licence cmeel-zlib zlib/LICENSE)
  endif()
  if(SYMBIND_HAVE_LAPACK)
    install(PROGRAMS "${SYMBIND_LAPACK_LIBRARY}" DESTINATION symbind/lib COMPONENT python)
    symbind_lapack_licence(openblas_licence)
  endif()
  symbind_image_libraries(image_libraries)
  foreach(library ${image_libraries})
    cmake_path(GET library FILENAME name)
    string(REGEX MATCH "^lib[a-z0-9]+\\.so\\.[0-9]+" soname "${name}")
    install(FILES "${library}" DESTINATION symbind/lib RENAME "${soname}" COMPONENT python)
    string(REGEX MATCH "^lib(jpeg|png)" package "${soname}")
    file(GLOB notice "/usr/share/doc/${package}*/copyright")
    if(notice)
      list(GET notice 0 ${package}_licence)
      set(licences ${licences} ${package}_licence)
    endif()
  endforeach()
  # What travels along brings its licence.
  foreach(notice onednn_licence onednn_third_parties openblas_licence zlib_licence nlohmann_licence ${licences})
    if(${notice})
      install(FILES "${${notice}}" DESTINATION symbind/lib/licences RENAME ${notice}.txt COMPONENT python)
    endif()
  endforeach()

  set_target_properties(_symbind PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
  install(TARGETS _symbind LIBRARY DESTINATION symbind COMPONENT python)
  install(DIRECTORY "${PROJECT_BINARY_DIR}/python/symbind/" DESTINATION symbind COMPONENT python
    FILES_MATCHING PATTERN "*.pyi")
endfunction()
