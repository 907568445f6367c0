#include "symbind/backend/cpu/conv_view.h"

#include <algorithm>
#include <limits>

#include "symbind/backend/cpu/short_rows.h"

namespace symbind::cpu_backend::conv_view {
namespace {

constexpr int64_t most_elements = 1 << 19;  // of the copy of a unit, where slabs can make it smaller
constexpr int64_t most_chunk = 512;
constexpr int64_t few_positions = 128;  // of an image: several images share vectors

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
int64_t floor_mod(int64_t a, int64_t b) { return (a % b + b) % b; }

ArrayStrides strides_of(int64_t channels, const Extents& extent, bool channels_last) {
  const int64_t size = extent[0] * extent[1] * extent[2], step = channels_last ? channels : 1;
  return {channels * size, channels_last ? 1 : size, {extent[1] * extent[2] * step, extent[2] * step, step}, extent};
}

// Calls visit(offsets, number) for every position of the kernel.
template <class Visit>
void each_tap(const ConvolutionSize& size, Visit visit) {
  int64_t number = 0;
  for (int64_t d = 0; d < size.kernel[0]; ++d)
    for (int64_t h = 0; h < size.kernel[1]; ++h)
      for (int64_t w = 0; w < size.kernel[2]; ++w) visit(Extents{d, h, w}, number++);
}

}  // namespace

ArrayStrides input_strides(const ConvolutionSize& size) {
  return strides_of(size.channels, size.in, size.channels_last);
}
ArrayStrides output_strides(const ConvolutionSize& size) {
  return strides_of(size.filters, size.out, size.channels_last);
}

Pass forward_pass(const ConvolutionSize& size) {
  Pass pass{size.out, size.stride, {0, 0, 0}, {1, 1, 1}, {}};
  each_tap(size, [&](const Extents& at, int64_t number) {
    Tap tap{{}, number};
    for (size_t axis = 0; axis < 3; ++axis) tap.offset[axis] = at[axis] * size.dilate[axis] - size.pad[axis];
    pass.taps.push_back(tap);
  });
  return pass;
}

// Element x of the data was read by output (x + pad - tap · dilate) / stride, where that is whole: with x = r + stride
// · q by output q + (r + pad - tap · dilate) / stride.
std::vector<Pass> grad_data_passes(const ConvolutionSize& size) {
  std::vector<Pass> passes;
  each_tap(size, [&](const Extents& at, int64_t number) {
    Extents first, grid;
    Tap tap{{}, number};
    for (size_t axis = 0; axis < 3; ++axis) {
      const int64_t reach = at[axis] * size.dilate[axis] - size.pad[axis];
      first[axis] = floor_mod(reach, size.stride[axis]);
      if (first[axis] >= size.in[axis]) return;
      tap.offset[axis] = (first[axis] - reach) / size.stride[axis];
      grid[axis] = ceil_div(size.in[axis] - first[axis], size.stride[axis]);
    }
    auto pass = std::find_if(passes.begin(), passes.end(), [&](const Pass& known) { return known.first == first; });
    if (pass == passes.end()) pass = passes.insert(pass, {grid, {1, 1, 1}, first, size.stride, {}});
    pass->taps.push_back(tap);
  });
  return passes;
}

View::View(const Pass& pass, int64_t batch, int64_t channels, int64_t groups, int64_t lanes, int64_t least_units)
    : pass_(pass), batch_(batch), channels_(channels), groups_(groups), lanes_(lanes) {
  set_phases();
  choose_order(batch, lanes);
  set_slabs(lanes, least_units);
}

// An offset is a phase, where reading starts, plus a shift by whole positions.
void View::set_phases() {
  for (const Tap& tap : pass_.taps) {
    tap_phase_.emplace_back();
    tap_shift_.push_back(tap.offset);
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t stride = pass_.stride[axis];
    int64_t least = std::numeric_limits<int64_t>::max(), most_shift = 0;
    for (const Tap& tap : pass_.taps) least = std::min(least, tap.offset[axis]);
    std::vector<int64_t>& phases = phases_[axis];
    for (size_t i = 0; i < pass_.taps.size(); ++i) {
      const int64_t reach = pass_.taps[i].offset[axis] - least, phase = least + reach % stride;
      const auto found = std::find(phases.begin(), phases.end(), phase);
      tap_phase_[i][axis] = found - phases.begin();
      if (found == phases.end()) phases.push_back(phase);
      tap_shift_[i][axis] = reach / stride;
      most_shift = std::max(most_shift, reach / stride);
    }
    planes_ *= static_cast<int64_t>(phases.size());
    grid_[axis] = pass_.grid[axis];
    extent_[axis] = grid_[axis] + most_shift;
  }
}

void View::choose_order(int64_t batch, int64_t lanes) {
  const int64_t image_positions = grid_[0] * grid_[1] * grid_[2];
  const int64_t together = std::min(batch, ceil_div(few_positions, image_positions));
  double least = std::numeric_limits<double>::max();
  const auto consider = [&](const std::array<size_t, 4>& order, int64_t images, double effort) {
    for (size_t flattened = 4; flattened > 0; --flattened) {
      int64_t columns = 1, runs = 1;
      for (size_t i = 0; i < 4; ++i) {
        const size_t axis = order[i];
        const int64_t grid = axis == 3 ? images : grid_[axis], extent = axis == 3 ? images : extent_[axis];
        if (i < 4 - flattened)
          runs *= grid;
        else
          columns = (columns - 1) * extent + grid;
      }
      const auto cost = static_cast<double>(runs * round_up(columns, lanes) + runs * lanes / 4) /
                        static_cast<double>(images) * effort;
      if (cost >= least * 0.98) continue;
      least = cost;
      order_ = order;
      flattened_ = flattened;
      images_ = images;
    }
  };
  std::array<size_t, 3> axes = {0, 1, 2};
  const auto is_single = [&](size_t axis) { return extent_[axis] == 1; };
  do {
    // An axis with a single element is an outer one: rows run along an axis with more.
    if ((is_single(axes[1]) && !is_single(axes[0])) || (is_single(axes[2]) && !is_single(axes[1]))) continue;
    const double effort = axes[2] == 2 || is_single(2) ? 1 : 1.3;  // rows are copied faster than columns
    consider({3, axes[0], axes[1], axes[2]}, 1, effort);
    if (together > 1) consider({axes[0], axes[1], axes[2], 3}, together, 1.3);
  } while (std::next_permutation(axes.begin(), axes.end()));
  grid_[3] = extent_[3] = images_;
  image_blocks_ = ceil_div(batch, images_);
}

void View::set_slabs(int64_t lanes, int64_t least_units) {
  // The outermost axis along which there is more than one position.
  slab_axis_ = static_cast<int64_t>(order_[0] == 3 ? order_[1] : order_[0]);
  for (size_t i = 4; i-- > 0;)
    if (order_[i] != 3 && grid_[order_[i]] > 1) slab_axis_ = static_cast<int64_t>(order_[i]);
  const auto axis = static_cast<size_t>(slab_axis_);
  const int64_t across = extent_[0] * extent_[1] * extent_[2] * images_ / extent_[axis];
  const int64_t shift = extent_[axis] - grid_[axis];
  const int64_t most_positions = most_elements / std::max<int64_t>(1, channels_ * planes_ * across) - shift;
  const int64_t wanted = ceil_div(least_units, groups_ * image_blocks_);
  slab_ = std::min(grid_[axis], std::max<int64_t>(most_positions, 1 + shift));
  slab_ = std::min(slab_, std::max<int64_t>(1, ceil_div(grid_[axis], wanted)));
  slabs_ = ceil_div(grid_[axis], slab_);
  slab_ = ceil_div(grid_[axis], slabs_);
  slabs_ = ceil_div(grid_[axis], slab_);
  extent_[axis] = slab_ + shift;
  int64_t pitch = 1;
  for (size_t i = 4; i-- > 0;) {
    pitch_[order_[i]] = pitch;
    pitch *= extent_[order_[i]];
  }
  plane_ = pitch;
  const Unit whole{0, 0, images_, 0, slab_};
  const int64_t columns = run(whole);
  chunk_ = round_up(ceil_div(columns, ceil_div(columns, most_chunk)), lanes);
  slack_ = chunk_ + lanes;
}

Unit View::unit(int64_t number) const {
  const int64_t slab = number % slabs_, block = number / slabs_ % image_blocks_;
  const auto axis = static_cast<size_t>(slab_axis_);
  return {number / slabs_ / image_blocks_, block * images_, std::min(images_, batch_ - block * images_), slab * slab_,
          std::min(slab_, grid_[axis] - slab * slab_)};
}

std::vector<int64_t> View::offsets() const {
  std::vector<int64_t> result;
  for (int64_t channel = 0; channel < channels_; ++channel)
    for (size_t tap = 0; tap < pass_.taps.size(); ++tap) {
      int64_t plane = 0, shift = 0;
      for (size_t axis = 0; axis < 3; ++axis) {
        plane = plane * static_cast<int64_t>(phases_[axis].size()) + tap_phase_[tap][axis];
        shift += tap_shift_[tap][axis] * pitch_[axis];
      }
      result.push_back((channel * planes_ + plane) * plane_ + shift);
    }
  return result;
}

View::Effort View::effort() const {
  const Unit whole{0, 0, images_, 0, slab_};
  const double units = static_cast<double>(batch_ * slabs_) / static_cast<double>(images_);
  return {units * static_cast<double>(planes_ * plane_),
          units * static_cast<double>(runs(whole) * round_up(run(whole), lanes_)), grid_[order_[3]],
          order_[3] == 2 || (order_[3] == 1 && extent_[2] == 1)};
}

int64_t View::positions(const Unit& unit, size_t axis) const {
  if (axis == 3) return unit.images;
  return static_cast<int64_t>(axis) == slab_axis_ ? unit.slab : grid_[axis];
}

int64_t View::run(const Unit& unit) const {
  int64_t columns = 1;
  for (size_t i = 4 - flattened_; i < 4; ++i) columns = (columns - 1) * extent_[order_[i]] + positions(unit, order_[i]);
  return columns;
}

int64_t View::runs(const Unit& unit) const {
  int64_t count = 1;
  for (size_t i = 0; i < 4 - flattened_; ++i) count *= positions(unit, order_[i]);
  return count;
}

int64_t View::most_chunks() const { return chunks({0, 0, images_, 0, slab_}); }

View::Chunk View::chunk_at(const Unit& unit, int64_t number) const {
  const int64_t parts = chunks_of_run(unit), run_number = number / parts, begin = number % parts * chunk_;
  int64_t offset = begin, rest = run_number;
  for (size_t i = 4 - flattened_; i-- > 0;) {
    const int64_t count = positions(unit, order_[i]);
    offset += rest % count * pitch_[order_[i]];
    rest /= count;
  }
  return {run_number, begin, std::min(begin + chunk_, run(unit)), offset};
}

int64_t View::run_target(const Unit& unit, int64_t run_number, const ArrayStrides& target) const {
  const auto slab_axis = static_cast<size_t>(slab_axis_);
  int64_t at = unit.first_image * target.image + unit.slab_begin * target_step(slab_axis, target);
  for (size_t axis = 0; axis < 3; ++axis) at += pass_.first[axis] * target.space[axis];
  int64_t rest = run_number;
  for (size_t i = 4 - flattened_; i-- > 0;) {
    const int64_t count = positions(unit, order_[i]);
    at += rest % count * target_step(order_[i], target);
    rest /= count;
  }
  return at;
}

int64_t View::row_target(const Unit& unit, int64_t row, const ArrayStrides& target) const {
  int64_t at = 0;
  for (size_t i = 3; i-- > 4 - flattened_;) {
    const size_t axis = order_[i];
    const int64_t position = row % extent_[axis];
    if (position >= positions(unit, axis)) return -1;
    at += position * target_step(axis, target);
    row /= extent_[axis];
  }
  return at;
}

void View::add_segments(const Unit& unit, const Chunk& chunk, const ArrayStrides& target, int64_t first_column,
                        std::vector<Segment>& to) const {
  const size_t inner = order_[3];
  const int64_t row = extent_[inner], valid = std::min(positions(unit, inner), row);
  const int64_t step = target_step(inner, target), base = run_target(unit, chunk.run, target);
  int64_t at = chunk.begin % row, number = chunk.begin / row;
  for (int64_t column = chunk.begin; column < chunk.end; column += row - at, at = 0, ++number) {
    const int64_t count = std::min(valid - at, chunk.end - column);
    const int64_t outer = row_target(unit, number, target);
    if (count > 0 && outer >= 0) to.push_back({first_column + column - chunk.begin, base + outer + at * step, count});
  }
}

template <class C>
void View::copy(const Unit& unit, const ArrayStrides& strides, const C* data, C* to) const {
  const auto slab_axis = static_cast<size_t>(slab_axis_);
  const C* const images = data + unit.first_image * strides.image;
  for (int64_t plane = 0; plane < planes_; ++plane) {
    // Positions [low, high) along each axis are inside the data; position p is element p · step + start.
    std::array<int64_t, 4> low{}, high{}, step{};
    int64_t offset = 0, rest = plane;
    bool inside = unit.images == images_;
    for (size_t axis = 3; axis-- > 0;) {
      const auto count = static_cast<int64_t>(phases_[axis].size());
      const int64_t begin = axis == slab_axis ? unit.slab_begin : 0;
      const int64_t start = phases_[axis][static_cast<size_t>(rest % count)] + begin * pass_.stride[axis];
      rest /= count;
      const int64_t stride = pass_.stride[axis], extent = extent_[axis];
      low[axis] = start < 0 ? std::min(extent, ceil_div(-start, stride)) : 0;
      high[axis] =
          start >= strides.extent[axis] ? 0 : std::min(extent, (strides.extent[axis] - 1 - start) / stride + 1);
      inside = inside && low[axis] == 0 && high[axis] == extent;
      step[axis] = stride * strides.space[axis];
      offset += start * strides.space[axis];
    }
    high[3] = unit.images;
    step[3] = strides.image;
    const auto [a, b, c, d] = order_;
    for (int64_t channel = 0; channel < channels_; ++channel) {
      const C* const from = images + channel * strides.channel + offset;
      C* const copied = to + (channel * planes_ + plane) * plane_;
      if (!inside) std::fill(copied, copied + plane_, C(0));
      for (int64_t i = low[a]; i < high[a]; ++i)
        for (int64_t j = low[b]; j < high[b]; ++j)
          for (int64_t k = low[c]; k < high[c]; ++k)
            gather_row(from + i * step[a] + j * step[b] + k * step[c] + low[d] * step[d], step[d], high[d] - low[d],
                       copied + i * pitch_[a] + j * pitch_[b] + k * pitch_[c] + low[d]);
    }
  }
}

template void View::copy(const Unit&, const ArrayStrides&, const float*, float*) const;
template void View::copy(const Unit&, const ArrayStrides&, const double*, double*) const;

}  // namespace symbind::cpu_backend::conv_view
