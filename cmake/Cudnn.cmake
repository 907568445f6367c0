# Finds cuDNN 9: beside CUDA, in the system and in .venv (PyPI: nvidia-cudnn-cu12, nvidia-cudnn-cu13); another is named by
# CUDNN_ROOT. Without it convolutions run on the GPU by slower kernels of our own, and recurrent layers other than LSTMs on the
# host.

set(SYMBIND_HAVE_CUDNN OFF)

# symbind_find_cudnn(): sets SYMBIND_HAVE_CUDNN and SYMBIND_CUDNN_SUMMARY. pip shows no warnings of a build that succeeds, so
# there a missing cuDNN is an error.
macro(symbind_find_cudnn)
  set(SYMBIND_CUDNN_SUMMARY "without cuDNN")
  if(SYMBIND_CUDNN)
    symbind_find_beside_cuda(CUDNN cudnn cudnn_graph.h cudnn libcudnn.so.9)
    if(SYMBIND_CUDNN_INCLUDE_DIR AND SYMBIND_CUDNN_LIBRARY)
      set(SYMBIND_HAVE_CUDNN ON)
      set(SYMBIND_CUDNN_SUMMARY "with cuDNN")
    else()
      string(CONCAT missing "cuDNN 9 was not found, without which convolutions and recurrent layers on a GPU are many times "
        "slower. Install it (pip install nvidia-cudnn-cu${CUDAToolkit_VERSION_MAJOR}, or the system's package), or name its "
        "folder by the environment variable CUDNN_ROOT.")
      if(SKBUILD)
        message(FATAL_ERROR "${missing} To build without it: pip install -C cmake.define.SYMBIND_CUDNN=OFF . (without the "
          "GPU backend: -C cmake.define.SYMBIND_CUDA=OFF)")
      elseif(SYMBIND_CUDNN STREQUAL "AUTO")
        message(WARNING "${missing} To build without it: -DSYMBIND_CUDNN=OFF")
      else()
        message(FATAL_ERROR "SYMBIND_CUDNN is ON. ${missing}")
      endif()
    endif()
  endif()
endmacro()
