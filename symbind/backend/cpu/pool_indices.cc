// Plain loops: the fuse pass creates these operators for GPUs.
#include "symbind/ops/pool_indices.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/pool.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Where the elements of a plane, one channel of one image, are.
struct Plane {
  int64_t start, step;
};
Plane plane_of(const PoolingSize& size, int64_t plane, int64_t count) {
  if (!size.channels_last) return {plane * count, 1};
  return {plane / size.channels * count * size.channels + plane % size.channels, size.channels};
}

// Calls visit(index of the window in its plane, index of the element among the window's, index of that element in its
// plane) for every element of every window.
template <class Visit>
void each_element(const PoolingSize& size, Visit visit) {
  const std::array<int64_t, 3>&in = size.in, &out = size.out, &kernel = size.kernel;
  int64_t window = 0;
  for (int64_t d = 0; d < out[0]; ++d)
    for (int64_t h = 0; h < out[1]; ++h)
      for (int64_t w = 0; w < out[2]; ++w, ++window) {
        const PoolExtent depth = extent_at(size, 0, d), height = extent_at(size, 1, h), width = extent_at(size, 2, w);
        for (int64_t z = depth.begin; z < depth.end; ++z)
          for (int64_t y = height.begin; y < height.end; ++y)
            for (int64_t x = width.begin; x < width.end; ++x) {
              const int64_t i = z - (d * size.stride[0] - size.pad[0]), j = y - (h * size.stride[1] - size.pad[1]),
                            k = x - (w * size.stride[2] - size.pad[2]);
              visit(window, static_cast<uint8_t>((i * kernel[1] + j) * kernel[2] + k), (z * in[1] + y) * in[2] + x);
            }
      }
}

template <class T>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const PoolingSize size = size_of(node.as<PoolingIndices>(), node.inputs[0].shape, node.outputs[0].shape);
  return make_kernel([size](const Args& args) {
    using C = compute_type<T>;
    parallel_for(size.batch * size.channels, 1, [&](int64_t begin, int64_t end) {
      std::vector<C> largest(static_cast<size_t>(size.out_size())), compared(largest.size());
      std::vector<uint8_t> indices(largest.size());
      for (int64_t plane = begin; plane < end; ++plane) {
        const Plane in = plane_of(size, plane, size.in_size()), out = plane_of(size, plane, size.out_size());
        const T* const x = args.in<T>(0) + in.start;
        std::fill(largest.begin(), largest.end(), lowest<T>());
        std::fill(indices.begin(), indices.end(), no_pooling_index);
        each_element(size, [&](int64_t window, uint8_t index, int64_t element) {
          const auto i = static_cast<size_t>(window);
          const C value = widened(x[element * in.step]);
          if (value > largest[i]) largest[i] = value;
          if (indices[i] != no_pooling_index && !(value > compared[i])) return;
          compared[i] = value;
          indices[i] = index;
        });
        for (size_t i = 0; i < largest.size(); ++i) {
          const int64_t target = out.start + static_cast<int64_t>(i) * out.step;
          if (args.outputs[0]) args.out<T>(0)[target] = narrowed<T>(largest[i]);
          if (args.outputs[1]) args.out<uint8_t>(1)[target] = indices[i];
        }
      }
    });
  });
}

template <class T>
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const PoolingSize size = size_of(node.as<PoolingIndicesGrad>(), node.inputs[2].shape, node.inputs[0].shape);
  return make_kernel([size](const Args& args) {
    using C = compute_type<T>;
    parallel_for(size.batch * size.channels, 1, [&](int64_t begin, int64_t end) {
      std::vector<C> sums(static_cast<size_t>(size.in_size()));
      for (int64_t plane = begin; plane < end; ++plane) {
        const Plane in = plane_of(size, plane, size.in_size()), out = plane_of(size, plane, size.out_size());
        std::fill(sums.begin(), sums.end(), C(0));
        each_element(size, [&](int64_t window, uint8_t index, int64_t element) {
          const int64_t source = out.start + window * out.step;
          if (args.in<uint8_t>(1)[source] == index)
            sums[static_cast<size_t>(element)] += widened(args.in<T>(0)[source]);
        });
        for (size_t i = 0; i < sums.size(); ++i)
          args.out<T>()[in.start + static_cast<int64_t>(i) * in.step] = narrowed<T>(sums[i]);
      }
    });
  });
}

}  // namespace

void add_pool_indices(ImplementationTable& table) {
  add_plain<PoolingIndices>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_forward<typename decltype(type)::type>(node); });
  });
  add_plain<PoolingIndicesGrad>(table, [](const NodeView& node) {
    return visit_floating(node.outputs[0].dtype,
                          [&](auto type) { return build_backward<typename decltype(type)::type>(node); });
  });
}

}  // namespace symbind::cpu_backend
