# Which GPUs kernels are compiled for unless CMAKE_CUDA_ARCHITECTURES or CUDAARCHS, CMake's own variables, say it.

# symbind_gpu_architectures(OUT nvcc): those of this machine's GPUs, "80;90"; empty where there are none that kernels run on. A
# GPU that nvcc does not know has the newest before it. CMake's own "native" is newer than 3.22, and an error without a GPU.
function(symbind_gpu_architectures out nvcc)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    TIMEOUT 20 OUTPUT_VARIABLE capabilities RESULT_VARIABLE status ERROR_QUIET)
  set(found)
  if(status EQUAL 0)
    execute_process(COMMAND "${nvcc}" --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+" known "${known}")
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${capabilities}")
    foreach(capability ${capabilities})
      string(REPLACE "." "" capability "${capability}")
      set(best 0)
      foreach(architecture ${known})
        if(architecture GREATER best AND architecture LESS_EQUAL capability)
          set(best ${architecture})
        endif()
      endforeach()
      if(best GREATER_EQUAL 80)  # older ones lack instructions that kernels use
        list(APPEND found ${best})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES found)
    list(SORT found COMPARE NATURAL)
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# symbind_default_architectures(OUT nvcc): one architecture halves the time of a build. So a build in the tree is for this
# machine's GPUs or, where there are none, for the oldest that kernels run on, whose intermediate code newer GPUs compile when
# they first run a kernel. A wheel, which may be taken elsewhere, is for that one and for 9.0, which has kernels of its own.
function(symbind_default_architectures out nvcc)
  if(SKBUILD)
    set(architectures 80-real 90)
  else()
    symbind_gpu_architectures(architectures "${nvcc}")
    if(NOT architectures)
      set(architectures 80)
    endif()
  endif()
  set(${out} "${architectures}" PARENT_SCOPE)
endfunction()
