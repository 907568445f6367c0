#include "symbind/ops/roi_pool.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/roi_pool.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The index of the largest element, -1 if the window is empty.
template <class C, class T>
int32_t largest(const T* plane, RoiWindow rows, RoiWindow columns, int64_t width) {
  int64_t best = -1;
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t i = row * width + columns.begin; i < row * width + columns.end; ++i)
      if (best < 0 || static_cast<C>(plane[i]) > static_cast<C>(plane[best])) best = i;
  return static_cast<int32_t>(best);
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<ROIPooling>();
  const Shape data = node.inputs[0].shape, result = node.outputs[0].shape;
  // MXNet's scale is a float.
  return visit_floating(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = compute_type<T>;
    const C scale = static_cast<C>(static_cast<float>(p.spatial_scale));
    return make_kernel([=](const Args& args) {
      const T *const x = args.in<T>(0), *const rois = args.in<T>(1);
      T* const y = args.out<T>(0);
      int32_t* const indices = args.out<int32_t>(1);
      const int64_t channels = data[1], space = data[2] * data[3], cells = result[2] * result[3];
      parallel_for(result[0] * channels, element_grain / 8 / std::max<int64_t>(1, space) + 1,
                   [=](int64_t begin, int64_t end) {
                     for (int64_t part = begin; part < end; ++part) {
                       const T* const region = rois + part / channels * 5;
                       const auto at = [=](int i) { return static_cast<C>(region[i]); };
                       const int64_t image = roi_image(at(0), data[0]);
                       const RoiCells<C> down(at(2), at(4), scale, result[2]), across(at(1), at(3), scale, result[3]);
                       const T* const plane = x + (std::max<int64_t>(0, image) * channels + part % channels) * space;
                       for (int64_t cell = 0; cell < cells; ++cell) {
                         const RoiWindow rows = down.within(cell / result[3], image < 0 ? 0 : data[2]);
                         const RoiWindow columns = across.within(cell % result[3], data[3]);
                         const int32_t index = largest<C>(plane, rows, columns, data[3]);
                         y[part * cells + cell] = index < 0 ? T(0) : plane[index];
                         if (indices) indices[part * cells + cell] = index;
                       }
                     }
                   });
    });
  });
}

// Each thread processes all regions of some planes.
std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const Shape dy_shape = node.inputs[0].shape, data = node.outputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = compute_type<T>;
    return make_kernel([=](const Args& args) {
      const T *const dy = args.in<T>(0), *const rois = args.in<T>(2);
      const int32_t* const indices = args.in<int32_t>(1);
      T* const dx = args.out<T>();
      const int64_t channels = data[1], space = data[2] * data[3], cells = dy_shape[2] * dy_shape[3];
      const int64_t work = space + dy_shape[0] * cells;
      parallel_for(data[0] * channels, element_grain / 4 / (work + 1) + 1, [=](int64_t begin, int64_t end) {
        std::vector<C> sums(static_cast<size_t>(space));
        for (int64_t plane = begin; plane < end; ++plane) {
          std::fill(sums.begin(), sums.end(), C(0));
          for (int64_t region = 0; region < dy_shape[0]; ++region) {
            if (roi_image(static_cast<C>(rois[region * 5]), data[0]) != plane / channels) continue;
            const int64_t first = (region * channels + plane % channels) * cells;
            for (int64_t i = first; i < first + cells; ++i)
              if (indices[i] >= 0 && indices[i] < space) sums[static_cast<size_t>(indices[i])] += static_cast<C>(dy[i]);
          }
          for (int64_t i = 0; i < space; ++i) dx[plane * space + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
        }
      });
    });
  });
}

}  // namespace

void add_roi_pool(ImplementationTable& table) {
  add_plain<ROIPooling>(table, build_forward);
  add_plain<ROIPoolingGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
