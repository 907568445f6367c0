// How a convolution of each channel by itself reads one plane (a channel of an image): with zeros around it and, where
// the stride along its rows is not 1, every stride-th element together, so that what a kernel position reads for
// neighbouring outputs is contiguous.
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
// The same without the products with rows of padding, where leaving these out is worth further passes.
PlaneWork in_bands(const PlaneWork& work);

// Where planes are small: what each output is the sum of.
int64_t count_products(const PlaneWork& work);
Products products_of(const PlaneWork& work);

class PaddedPlane {
 public:
  // `always_copied`: also where the plane itself could be read.
  explicit PaddedPlane(const PlaneWork& work, bool always_copied = false);

  // A plane that would have so many elements, or more, cannot be copied.
  static constexpr int64_t most_elements = 1 << 22;

  // Else the plane is read where it is.
  bool is_copied() const { return is_copied_; }
  int64_t elements() const { return elements_; }
  Grid grid(const Pass& pass) const;
  std::vector<int64_t> offsets(const Pass& pass) const;
  // What is around the plane is left as it is.
  void copy(const float* plane, float* to) const { kernels().copy_rows(rows_, stride_, plane, to); }

 private:
  void set_extents(const PlaneWork& work);
  void set_rows(const PlaneWork& work);

  bool is_copied_;
  Extents first_, extent_;
  int64_t stride_, elements_;
  std::vector<int64_t> phases_;  // where along a row each begins, counted from first_
  std::vector<RowCopy> rows_;
};

}  // namespace symbind::cpu_backend::depthwise
