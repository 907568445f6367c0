// Code shared by the plain kernels of Pooling, and kernels for special cases.
#pragma once

#include <algorithm>
#include <memory>

#include "symbind/backend/pooling.h"
#include "symbind/ops/pool.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// The extent of a window along one axis.
struct PoolExtent {
  int64_t begin, end;  // inside the input
  int64_t counted;     // elements that a mean counts
};
inline PoolExtent extent_at(const PoolingSize& size, size_t axis, int64_t position) {
  const int64_t start = position * size.stride[axis] - size.pad[axis];
  const int64_t stop = std::min(start + size.kernel[axis], size.in[axis] + size.pad[axis]);
  const int64_t begin = std::max<int64_t>(start, 0), end = std::min(stop, size.in[axis]);
  return {begin, end, size.count_padding ? stop - start : end - begin};
}

// One window that is the whole plane, its elements contiguous.
bool is_whole_plane(const PoolingSize& size, PoolKind kind);
template <class T>
std::unique_ptr<Kernel> build_whole_planes(const PoolingSize& size, PoolKind kind);
template <class T>
std::unique_ptr<Kernel> build_whole_planes_grad(const PoolingSize& size, PoolKind kind);

// Several planes in the lanes of a vector, for elements of a plane that are contiguous. T is not double.
bool suits_lanes(const PoolingSize& size, PoolKind kind, DType dtype);
bool suits_lanes_grad(const PoolingSize& size, PoolKind kind, DType dtype);
template <class T>
std::unique_ptr<Kernel> build_pool_lanes(const PoolingSize& size, PoolKind kind);
template <class T>
std::unique_ptr<Kernel> build_pool_lanes_grad(const PoolingSize& size, PoolKind kind);

}  // namespace symbind::cpu_backend
