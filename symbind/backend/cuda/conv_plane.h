// Convolutions over two axes, for kernels of ours that count their extents in int.
#pragma once

#include "symbind/ops/conv.h"

namespace symbind::cuda_backend {

// Does the convolution leave the first of its three axes as it is?
inline bool is_plane(const ConvolutionSize& size) {
  return size.in[0] == 1 && size.out[0] == 1 && size.kernel[0] == 1 && size.pad[0] == 0;
}

// Copies the extents of a plane to a kernel's struct, which may have dilations.
template <class Extents>
void copy_plane(const ConvolutionSize& size, Extents& to) {
  to.batch = static_cast<int>(size.batch);
  to.channels = static_cast<int>(size.channels);
  to.filters = static_cast<int>(size.filters);
  for (size_t axis = 0; axis < 2; ++axis) {
    to.in[axis] = static_cast<int>(size.in[axis + 1]);
    to.out[axis] = static_cast<int>(size.out[axis + 1]);
    to.kernel[axis] = static_cast<int>(size.kernel[axis + 1]);
    to.stride[axis] = static_cast<int>(size.stride[axis + 1]);
    to.pad[axis] = static_cast<int>(size.pad[axis + 1]);
    if constexpr (requires { to.dilate; }) to.dilate[axis] = static_cast<int>(size.dilate[axis + 1]);
  }
}

}  // namespace symbind::cuda_backend
