// Deformable convolutions as products of matrices. Which pixels the points of an image read, and with which weights, is
// computed once for all channels that share them.
#include "symbind/backend/deformable_conv.h"

#include <algorithm>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/product.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using deformable::Sample;
using deformable::Size;

// A point with the pixels that it reads. A pixel outside the image is replaced by another one with weight 0; if all are
// outside, the first is -1.
template <class C>
struct Reading {
  int32_t pixel[4];
  C weight[4];

  bool any() const { return pixel[0] >= 0; }
};

// The arrays of a node.
template <class C>
struct Arrays {
  const C *data, *offset, *mask, *weight;  // mask: null where there is none
};

template <class C>
class Image {
 public:
  Image(const Size& size, const Arrays<C>& arrays, int64_t index)
      : size_(size),
        data_(arrays.data + index * size.channels * size.space()),
        offset_(arrays.offset + index * 2 * size.points()),
        mask_(arrays.mask ? arrays.mask + index * size.points() : nullptr) {}

  Sample<C> sample(int64_t point) const {
    const C* const own = offset_ + size_.offset_of(point);
    return {size_, point, own[0], own[size_.positions()]};
  }
  C mask(int64_t point) const { return mask_ ? mask_[point] : C(1); }

  // The readings of all points, with the mask as a factor of the weights.
  void find(std::vector<Reading<C>>& readings) const {
    readings.resize(static_cast<size_t>(size_.points()));
    parallel_for(size_.points(), element_grain / 16, [&](int64_t begin, int64_t end) {
      for (int64_t point = begin; point < end; ++point) {
        const Sample<C> from = sample(point);
        int32_t another = -1;
        for (int corner = 0; corner < 4; ++corner)
          if (from.has(size_, corner)) another = static_cast<int32_t>(from.pixel(size_, corner));
        Reading<C>& reading = readings[static_cast<size_t>(point)];
        for (int corner = 0; corner < 4; ++corner) {
          const bool has = from.has(size_, corner);
          reading.pixel[corner] = has ? static_cast<int32_t>(from.pixel(size_, corner)) : another;
          reading.weight[corner] = has ? from.weight(corner) * mask(point) : C(0);
        }
      }
    });
  }

  // columns (channels · taps, positions)
  void gather(const std::vector<Reading<C>>& readings, C* columns) const {
    const int64_t positions = size_.positions(), taps = size_.taps();
    parallel_for(size_.channels * taps, element_grain / 8 / (positions + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t channel = row / taps;
        const C* const plane = data_ + channel * size_.space();
        const Reading<C>* const own =
            readings.data() + (channel / size_.offset_channels() * taps + row % taps) * positions;
        C* const to = columns + row * positions;
        for (int64_t i = 0; i < positions; ++i) {
          const Reading<C>& from = own[i];
          to[i] = !from.any() ? C(0)
                              : from.weight[0] * plane[from.pixel[0]] + from.weight[1] * plane[from.pixel[1]] +
                                    from.weight[2] * plane[from.pixel[2]] + from.weight[3] * plane[from.pixel[3]];
        }
      }
    });
  }

  // The gradient of data from that of columns. Each thread computes whole channels.
  void scatter(const std::vector<Reading<C>>& readings, const C* columns_grad, C* data_grad) const {
    const int64_t positions = size_.positions(), taps = size_.taps();
    const int64_t work = size_.space() + taps * positions * 4;
    parallel_for(size_.channels, element_grain / 4 / (work + 1) + 1, [&](int64_t begin, int64_t end) {
      std::fill(data_grad + begin * size_.space(), data_grad + end * size_.space(), C(0));
      for (int64_t channel = begin; channel < end; ++channel) {
        const Reading<C>* const own = readings.data() + channel / size_.offset_channels() * taps * positions;
        const C* const from = columns_grad + channel * taps * positions;
        C* const plane = data_grad + channel * size_.space();
        for (int64_t i = 0; i < taps * positions; ++i)
          for (int corner = 0; corner < 4 && own[i].any(); ++corner)
            plane[own[i].pixel[corner]] += own[i].weight[corner] * from[i];
      }
    });
  }

  // The gradients of the offsets, and of the mask where mask_grad is not null.
  void offset_gradients(const C* columns_grad, C* offset_grad, C* mask_grad) const {
    const int64_t positions = size_.positions(), taps = size_.taps();
    parallel_for(size_.points(), element_grain / 8 / (size_.offset_channels() + 1) + 1,
                 [&](int64_t begin, int64_t end) {
                   for (int64_t point = begin; point < end; ++point) {
                     const Sample<C> from = sample(point);
                     const int64_t first = point / positions / taps * size_.offset_channels(),
                                   inner = point % (taps * positions);
                     C sums[4] = {};  // of the gradient times the pixel, for each corner
                     for (int64_t channel = first; channel < first + size_.offset_channels(); ++channel)
                       for (int corner = 0; corner < 4; ++corner)
                         if (from.has(size_, corner))
                           sums[corner] += columns_grad[channel * taps * positions + inner] *
                                           data_[channel * size_.space() + from.pixel(size_, corner)];
                     C by_y = 0, by_x = 0, by_mask = 0;
                     for (int corner = 0; corner < 4; ++corner) {
                       by_y += from.slope_y(corner) * sums[corner];
                       by_x += from.slope_x(corner) * sums[corner];
                       by_mask += from.weight(corner) * sums[corner];
                     }
                     if (offset_grad) {
                       offset_grad[size_.offset_of(point)] = by_y * mask(point);
                       offset_grad[size_.offset_of(point) + positions] = by_x * mask(point);
                     }
                     if (mask_grad) mask_grad[point] = by_mask;
                   }
                 });
  }

 private:
  const Size& size_;
  const C *data_, *offset_, *mask_;
};

// The parts of an image's arrays that belong to a group of channels.
struct Group {
  int64_t weight, columns, out;
  Group(const Size& size, int64_t image, int64_t group)
      : weight(group * size.group_filters() * size.group_rows()),
        columns(group * size.group_rows() * size.positions()),
        out((image * size.filters + group * size.group_filters()) * size.positions()) {}
};

template <class C>
void forward(const Size& size, const Arrays<C>& arrays, const C* bias, C* y, C* columns) {
  std::vector<Reading<C>> readings;
  const int64_t positions = size.positions();
  for (int64_t index = 0; index < size.images; ++index) {
    const Image<C> image(size, arrays, index);
    image.find(readings);
    image.gather(readings, columns);
    for (int64_t i = 0; i < size.groups; ++i) {
      const Group group(size, index, i);
      product<C>(size.group_filters(), positions, size.group_rows(), {arrays.weight + group.weight, size.group_rows()},
                 {columns + group.columns, positions}, {y + group.out, positions});
    }
  }
  if (!bias) return;
  parallel_for(size.images * size.filters, element_grain / (positions + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      for (int64_t i = 0; i < positions; ++i) y[plane * positions + i] += bias[plane % size.filters];
  });
}

// `grads` are of data, offset and mask; null: not requested.
template <class C>
void grad_data(const Size& size, const Arrays<C>& arrays, const C* dy, C* const* grads, C* columns) {
  std::vector<Reading<C>> readings;
  const int64_t positions = size.positions();
  for (int64_t index = 0; index < size.images; ++index) {
    const Image<C> image(size, arrays, index);
    for (int64_t i = 0; i < size.groups; ++i) {
      const Group group(size, index, i);
      product<C>(size.group_rows(), positions, size.group_filters(),
                 {arrays.weight + group.weight, size.group_rows(), true}, {dy + group.out, positions},
                 {columns + group.columns, positions});
    }
    if (grads[0]) {
      image.find(readings);
      image.scatter(readings, columns, grads[0] + index * size.channels * size.space());
    }
    if (grads[1] || grads[2])
      image.offset_gradients(columns, grads[1] ? grads[1] + index * 2 * size.points() : nullptr,
                             grads[2] ? grads[2] + index * size.points() : nullptr);
  }
}

template <class C>
void grad_weight(const Size& size, const Arrays<C>& arrays, const C* dy, C* weight_grad, C* bias_grad, C* columns) {
  std::vector<Reading<C>> readings;
  const int64_t positions = size.positions();
  if (size.images == 0) std::fill(weight_grad, weight_grad + size.filters * size.group_rows(), C(0));
  for (int64_t index = 0; index < size.images; ++index) {
    const Image<C> image(size, arrays, index);
    image.find(readings);
    image.gather(readings, columns);
    for (int64_t i = 0; i < size.groups; ++i) {
      const Group group(size, index, i);
      product<C>(size.group_filters(), size.group_rows(), positions, {dy + group.out, positions},
                 {columns + group.columns, positions, true}, {weight_grad + group.weight, size.group_rows()},
                 index > 0);
    }
  }
  if (!bias_grad) return;
  parallel_for(size.filters, element_grain / (size.images * positions + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t filter = begin; filter < end; ++filter) {
      C sum = 0;
      for (int64_t image = 0; image < size.images; ++image) {
        const C* const from = dy + (image * size.filters + filter) * positions;
        for (int64_t i = 0; i < positions; ++i) sum += from[i];
      }
      bias_grad[filter] = sum;
    }
  });
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

// The inputs from `first` on are data, offset, the mask where there is one, and the weight.
template <class C>
Arrays<C> arrays_at(const Size& size, const C* const* in, size_t first) {
  const size_t weight = first + (size.modulated ? 3 : 2);
  return {in[first], in[first + 1], size.modulated ? in[first + 2] : nullptr, in[weight]};
}

int64_t column_elements(const Size& size) { return size.channels * size.taps() * size.positions() + 1; }

template <class P>
std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<P>();
  const Size size(p, std::is_same_v<P, ModulatedDeformableConvolution>, node.inputs[0].shape, node.outputs[0].shape);
  return widened_kernel(
      node,
      [size, no_bias = p.no_bias](auto type) {
        using C = typename decltype(type)::type;
        return [=](const C* const* in, C* const* out) {
          const size_t bias = size.modulated ? 4 : 3;
          forward<C>(size, arrays_at(size, in, 0), no_bias ? nullptr : in[bias], out[0], out[1]);
        };
      },
      column_elements(size));
}

template <class P>
std::unique_ptr<Kernel> build_grad_data(const NodeView& node) {
  const Size size(node.as<P>(), std::is_same_v<P, ModulatedDeformableConvolutionGradData>, node.inputs[1].shape,
                  node.inputs[0].shape);
  return widened_kernel(
      node,
      [size](auto type) {
        using C = typename decltype(type)::type;
        return [size](const C* const* in, C* const* out) {
          C* const grads[] = {out[0], out[1], size.modulated ? out[2] : nullptr};
          grad_data<C>(size, arrays_at(size, in, 1), in[0], grads, out[size.modulated ? 3 : 2]);
        };
      },
      column_elements(size));
}

template <class P>
std::unique_ptr<Kernel> build_grad_weight(const NodeView& node) {
  const auto& p = node.as<P>();
  const Size size(p, std::is_same_v<P, ModulatedDeformableConvolutionGradWeight>, node.inputs[1].shape,
                  node.inputs[0].shape);
  // Scratch for a gradient of the weight that is not requested.
  const int64_t spare = column_elements(size) + size.filters * size.group_rows();
  return widened_kernel(
      node,
      [size, no_bias = p.no_bias](auto type) {
        using C = typename decltype(type)::type;
        return [=](const C* const* in, C* const* out) {
          C* const columns = out[no_bias ? 1 : 2];
          C* const weight_grad = out[0] ? out[0] : columns + column_elements(size);
          grad_weight<C>(size, arrays_at(size, in, 1), in[0], weight_grad, no_bias ? nullptr : out[1], columns);
        };
      },
      spare);
}

}  // namespace

void add_deformable_conv(ImplementationTable& table) {
  add_plain<DeformableConvolution>(table, build_forward<DeformableConvolution>);
  add_plain<DeformableConvolutionGradData>(table, build_grad_data<DeformableConvolutionGradData>);
  add_plain<DeformableConvolutionGradWeight>(table, build_grad_weight<DeformableConvolutionGradWeight>);
  add_plain<ModulatedDeformableConvolution>(table, build_forward<ModulatedDeformableConvolution>);
  add_plain<ModulatedDeformableConvolutionGradData>(table, build_grad_data<ModulatedDeformableConvolutionGradData>);
  add_plain<ModulatedDeformableConvolutionGradWeight>(table,
                                                      build_grad_weight<ModulatedDeformableConvolutionGradWeight>);
}

}  // namespace symbind::cpu_backend
