// A copy of a convolution's data in which every kernel position reads whole vectors for neighbouring outputs.
//
// The data of one group are copied with their padding. With a stride s along an axis, every s-th element is stored
// together (a phase), so that the elements a kernel position reads for neighbouring outputs are contiguous for any
// stride and dilation. Row k of the matrix of patches, (channel, kernel position), is then the copy itself at an
// offset; patches are never written out. Outputs are computed in runs over this copy: a run over several axes computes
// a few columns beyond the edge of each row that are never stored.
//
// The gradient of the data is such a convolution too: of the outputs' gradient, one for each phase of the data.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "symbind/ops/conv.h"

namespace symbind::cpu_backend::conv_view {

using Extents = std::array<int64_t, 3>;

// The strides of an array of activations, from the first channel of the first group on.
struct ArrayStrides {
  int64_t image, channel;
  Extents space;   // from one element to the next along each axis
  Extents extent;  // elements along each axis
};
ArrayStrides input_strides(const ConvolutionSize& size);
ArrayStrides output_strides(const ConvolutionSize& size);

// A position of the kernel: its offset relative to (output position · stride), and its number in the kernel.
struct Tap {
  Extents offset;
  int64_t number;
};

// Outputs at first + step · position, each a sum over the taps.
struct Pass {
  Extents grid;    // output positions along each axis
  Extents stride;  // step in the data from one position to the next
  Extents first, step;
  std::vector<Tap> taps;
};
Pass forward_pass(const ConvolutionSize& size);
// The phases of the data's gradient that any kernel position reaches; the rest of it is zero.
std::vector<Pass> grad_data_passes(const ConvolutionSize& size);

// A unit of work: some images of one group, and a slab of them along the outermost axis.
struct Unit {
  int64_t group, first_image, images, slab_begin, slab;
};

// The copy's layout. Its axes are the three spatial ones and (number 3) the images of a unit, in the order with the
// least waste; the last `flattened` of them are one run.
class View {
 public:
  // `least_units`: the number of units that the work of a group over all images should be divisible into.
  View(const Pass& pass, int64_t batch, int64_t channels, int64_t groups, int64_t lanes, int64_t least_units);

  int64_t units() const { return groups_ * image_blocks_ * slabs_; }
  Unit unit(int64_t number) const;  // group after group

  int64_t elements() const { return channels_ * channel_elements() + slack_; }
  int64_t channel_elements() const { return planes_ * plane_; }
  // One for each (channel, tap), in this order.
  std::vector<int64_t> offsets() const;

  // The work of one channel over the whole batch: elements that are copied, columns that are computed (whole vectors),
  // how many of these are stored together, and whether rows run along the last axis, so that neighbours in a row are
  // neighbours in a plain array.
  struct Effort {
    double copied, columns;
    int64_t row;
    bool is_along_last_axis;
  };
  Effort effort() const;

  // The columns of a unit: runs · run, computed in chunks.
  int64_t run(const Unit& unit) const;
  int64_t runs(const Unit& unit) const;
  int64_t chunk() const { return chunk_; }  // most columns of a chunk: whole vectors
  int64_t chunks_of_run(const Unit& unit) const { return (run(unit) + chunk_ - 1) / chunk_; }
  int64_t chunks(const Unit& unit) const { return runs(unit) * chunks_of_run(unit); }
  int64_t most_chunks() const;
  // The offset of a chunk in the copy, and its columns.
  struct Chunk {
    int64_t run, begin, end, offset;
  };
  Chunk chunk_at(const Unit& unit, int64_t number) const;

  // Copies the channels of the unit; `data` points to its group.
  template <class C>
  void copy(const Unit& unit, const ArrayStrides& strides, const C* data, C* to) const;

  // Columns that are outputs: `count` of them from `column` of the chunk on go to index `target`, target + step(), ….
  struct Segment {
    int64_t column, target, count;
  };
  int64_t segment_step(const ArrayStrides& target) const { return target_step(order_[3], target); }
  // Adds those of a chunk, their columns counted from `first_column` on.
  void add_segments(const Unit& unit, const Chunk& chunk, const ArrayStrides& target, int64_t first_column,
                    std::vector<Segment>& to) const;

 private:
  using Axes = std::array<int64_t, 4>;
  int64_t positions(const Unit& unit, size_t axis) const;
  int64_t run_target(const Unit& unit, int64_t run, const ArrayStrides& target) const;
  // -1: not an output
  int64_t row_target(const Unit& unit, int64_t row, const ArrayStrides& target) const;
  int64_t target_step(size_t axis, const ArrayStrides& target) const {
    return axis == 3 ? target.image : pass_.step[axis] * target.space[axis];
  }
  void set_phases();
  void choose_order(int64_t batch, int64_t lanes);
  void set_slabs(int64_t lanes, int64_t least_units);

  Pass pass_;
  int64_t batch_, channels_, groups_, lanes_;
  Axes grid_, extent_, pitch_;
  std::array<std::vector<int64_t>, 3> phases_;  // per axis: the offsets added to (position · stride)
  std::vector<std::array<int64_t, 3>> tap_phase_, tap_shift_;
  std::array<size_t, 4> order_ = {3, 0, 1, 2};
  size_t flattened_ = 3;
  int64_t images_ = 1, image_blocks_ = 1, slab_ = 1, slabs_ = 1, slab_axis_ = 0;
  int64_t planes_ = 1, plane_ = 0, slack_ = 0, chunk_ = 0;
};

}  // namespace symbind::cpu_backend::conv_view
