# The GPUs that kernels are compiled for by default, with stand-ins for nvidia-smi and nvcc.
#
# usage: cmake -DSOURCE=TREE -DFOLDER=EMPTY -P cuda_architectures.cmake
cmake_minimum_required(VERSION 3.22)
include("${SOURCE}/cmake/CudaArchitectures.cmake")

# stand_in(name text status): a program that prints a text and ends with a status.
function(stand_in name text status)
  file(WRITE "${FOLDER}/${name}" "#!/bin/sh\nprintf '${text}'\nexit ${status}\n")
  file(CHMOD "${FOLDER}/${name}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()

function(expect_default expected)
  symbind_default_architectures(got "${FOLDER}/nvcc")
  if(NOT got STREQUAL expected)
    message(SEND_ERROR "expected \"${expected}\", got \"${got}\" (${ARGN})")
  endif()
endfunction()

set(ENV{PATH} "${FOLDER}")  # a real nvidia-smi would be found otherwise
file(REMOVE "${FOLDER}/nvidia-smi")
stand_in(nvcc "sm_75\\nsm_80\\nsm_90\\nsm_100\\nsm_120\\n" 0)
expect_default("80" "without nvidia-smi")

stand_in(nvidia-smi "9.0\\n" 0)
expect_default("90" "one GPU")
stand_in(nvidia-smi "12.0\\n9.0\\n8.0\\n9.0\\n" 0)
expect_default("80;90;120" "several GPUs")
stand_in(nvidia-smi "8.6\\n10.3\\n" 0)
expect_default("80;100" "GPUs that nvcc does not know")
stand_in(nvidia-smi "7.5\\n" 0)
expect_default("80" "a GPU that kernels do not run on")
stand_in(nvidia-smi "9.0\\n" 9)
expect_default("80" "nvidia-smi fails")
stand_in(nvidia-smi "[N/A]\\n" 0)
expect_default("80" "a driver that does not say")

set(SKBUILD 2)
stand_in(nvidia-smi "12.0\\n" 0)
expect_default("80-real;90" "a wheel")
