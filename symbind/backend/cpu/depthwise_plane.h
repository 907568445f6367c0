// How a depthwise convolution reads one plane (a channel of an image): padded with zeros and, if the stride along its
// rows is not 1, with every stride-th element stored together, so that the elements a kernel position reads for
// neighbouring outputs are contiguous.
#pragma once

#include "symbind/backend/cpu/conv_view.h"
#include "symbind/backend/cpu/depthwise_kernels.h"

namespace symbind::cpu_backend::depthwise {

using conv_view::Extents;
using conv_view::Pass;
using conv_view::Tap;

// What a convolution reads and writes, by extents: of the plane read, of the plane written, and the passes between.
struct PlaneWork {
  Extents in, out;
  std::vector<Pass> passes;
};
PlaneWork forward_work(const ConvolutionSize& size);
PlaneWork grad_data_work(const ConvolutionSize& size);
// The same without products with rows of padding, if skipping them is worth more passes.
PlaneWork in_bands(const PlaneWork& work);

// For small planes: the products that each output sums.
int64_t count_products(const PlaneWork& work);
Products products_of(const PlaneWork& work);

class PaddedPlane {
 public:
  // `always_copied`: also where the plane itself could be read.
  explicit PaddedPlane(const PlaneWork& work, bool always_copied = false);

  // A plane with this many elements or more cannot be copied.
  static constexpr int64_t most_elements = 1 << 22;

  // Otherwise the plane is read directly.
  bool is_copied() const { return is_copied_; }
  int64_t elements() const { return elements_; }
  Grid grid(const Pass& pass) const;
  std::vector<int64_t> offsets(const Pass& pass) const;
  // The padding around the plane is not written.
  void copy(const float* plane, float* to) const { kernels().copy_rows(rows_, stride_, plane, to); }

 private:
  void set_extents(const PlaneWork& work);
  void set_rows(const PlaneWork& work);

  bool is_copied_;
  Extents first_, extent_;
  int64_t stride_, elements_;
  std::vector<int64_t> phases_;  // offset of each along a row, relative to first_
  std::vector<RowCopy> rows_;
};

}  // namespace symbind::cpu_backend::depthwise
