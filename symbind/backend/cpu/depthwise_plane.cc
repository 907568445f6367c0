#include "symbind/backend/cpu/depthwise_plane.h"

#include <algorithm>
#include <limits>

namespace symbind::cpu_backend::depthwise {
namespace {

constexpr int64_t band_effort = 40;  // vector multiply-adds that cost as much as one more pass

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t volume(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }

// Does the tap read an element of the plane for any output?
bool is_ever_inside(const Pass& pass, const Tap& tap, const Extents& in) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t offset = tap.offset[axis], stride = pass.stride[axis];
    const int64_t first = offset < 0 ? ceil_div(-offset, stride) : 0;
    if (first >= pass.grid[axis] || first * stride + offset >= in[axis]) return false;
  }
  return true;
}

void drop_padding(PlaneWork& work) {
  for (Pass& pass : work.passes)
    std::erase_if(pass.taps, [&](const Tap& tap) { return !is_ever_inside(pass, tap, work.in); });
}

// Is every row read and written from end to end by one kernel position, and are all rows?
bool has_whole_rows(const PlaneWork& work) {
  if (work.passes.empty()) return false;
  return std::all_of(work.passes.begin(), work.passes.end(), [&](const Pass& pass) {
    const bool whole = pass.grid[2] == work.in[2] && pass.grid[2] == work.out[2];
    const bool dense = pass.stride[2] == 1 && pass.step[2] == 1 && pass.stride[1] == 1 && pass.step[1] == 1;
    return whole && dense &&
           std::all_of(pass.taps.begin(), pass.taps.end(), [](const Tap& tap) { return tap.offset[2] == 0; });
  });
}

// Rows without a border between them become one.
void merge_rows(PlaneWork& work) {
  const int64_t row = work.in[2];
  const auto merged = [=](const Extents& extents) { return Extents{1, extents[0], extents[1] * row}; };
  work.in = merged(work.in);
  work.out = merged(work.out);
  for (Pass& pass : work.passes) {
    pass.grid = merged(pass.grid);
    pass.stride = {1, pass.stride[0], 1};
    pass.step = {1, pass.step[0], 1};
    pass.first = {0, pass.first[0], pass.first[1] * row};
    for (Tap& tap : pass.taps) tap.offset = {0, tap.offset[0], tap.offset[1] * row};
  }
}

PlaneWork simplified(PlaneWork work) {
  drop_padding(work);
  for (int axis = 0; axis < 2 && has_whole_rows(work); ++axis) merge_rows(work);
  return work;
}

// Rows of outputs near the edge that read the same few kernel positions, as separate passes. `together` rows are
// computed at a time, with the kernel positions of any of them.
std::vector<Pass> bands(const Pass& pass, int64_t rows_in, int64_t together) {
  std::vector<Pass> found;
  for (int64_t row = 0; row < pass.grid[1]; row += together) {
    const int64_t rows = std::min(together, pass.grid[1] - row);
    std::vector<Tap> seen;
    for (const Tap& tap : pass.taps) {
      const int64_t first = row * pass.stride[1] + tap.offset[1], last = first + (rows - 1) * pass.stride[1];
      if (last >= 0 && first < rows_in) seen.push_back(tap);
    }
    const auto is_same = [](const Tap& a, const Tap& b) { return a.number == b.number; };
    if (!found.empty() &&
        std::equal(seen.begin(), seen.end(), found.back().taps.begin(), found.back().taps.end(), is_same)) {
      found.back().grid[1] += rows;
      continue;
    }
    found.push_back(pass);
    found.back().grid[1] = rows;
    found.back().first[1] += row * pass.step[1];
    found.back().taps = std::move(seen);
  }
  // Offsets are relative to the first row of a band.
  for (Pass& band : found)
    for (Tap& tap : band.taps) tap.offset[1] += (band.first[1] - pass.first[1]) / pass.step[1] * pass.stride[1];
  return found;
}

}  // namespace

PlaneWork in_bands(const PlaneWork& work) {
  PlaneWork result{work.in, work.out, {}};
  for (const Pass& pass : work.passes) {
    std::vector<Pass> parts{pass};
    if (pass.grid[0] == 1) {
      const int64_t vectors = ceil_div(pass.grid[2], slack);
      parts = bands(pass, work.in[1], vectors == 1 ? 8 : vectors == 2 ? 4 : 2);
      auto saved = pass.grid[1] * static_cast<int64_t>(pass.taps.size()) * vectors;
      for (const Pass& band : parts) saved -= band.grid[1] * static_cast<int64_t>(band.taps.size()) * vectors;
      if (saved < band_effort * static_cast<int64_t>(parts.size())) parts = {pass};
    }
    result.passes.insert(result.passes.end(), parts.begin(), parts.end());
  }
  return result;
}

PlaneWork forward_work(const ConvolutionSize& size) {
  return simplified({size.in, size.out, {conv_view::forward_pass(size)}});
}
PlaneWork grad_data_work(const ConvolutionSize& size) {
  return simplified({size.out, size.in, conv_view::grad_data_passes(size)});
}

int64_t count_products(const PlaneWork& work) {
  int64_t products = 0;
  for (const Pass& pass : work.passes) products += volume(pass.grid) * static_cast<int64_t>(pass.taps.size());
  return products;
}

Products products_of(const PlaneWork& work) {
  std::vector<std::vector<Product>> outputs(static_cast<size_t>(volume(work.out)));
  const auto index = [](const Extents& at, const Extents& extents) {
    return (at[0] * extents[1] + at[1]) * extents[2] + at[2];
  };
  for (const Pass& pass : work.passes)
    for (int64_t position = 0; position < volume(pass.grid); ++position) {
      Extents coordinates, target;
      int64_t rest = position;
      for (size_t axis = 3; axis-- > 0; rest /= pass.grid[axis]) {
        coordinates[axis] = rest % pass.grid[axis];
        target[axis] = pass.first[axis] + pass.step[axis] * coordinates[axis];
      }
      for (const Tap& tap : pass.taps) {
        Extents element;
        bool is_inside = true;
        for (size_t axis = 0; axis < 3; ++axis) {
          element[axis] = coordinates[axis] * pass.stride[axis] + tap.offset[axis];
          is_inside = is_inside && element[axis] >= 0 && element[axis] < work.in[axis];
        }
        if (is_inside)
          outputs[static_cast<size_t>(index(target, work.out))].push_back(
              {static_cast<int32_t>(index(element, work.in)), static_cast<int32_t>(tap.number)});
      }
    }
  Products products;
  for (const auto& output : outputs) {
    for (const Product& product : output) {
      auto& used = products.weights;
      auto found = std::find(used.begin(), used.end(), product.weight);
      if (found == used.end()) found = used.insert(found, product.weight);
      products.list.push_back({product.source, static_cast<int32_t>(found - used.begin())});
    }
    products.ends.push_back(static_cast<int32_t>(products.list.size()));
  }
  return products;
}

PaddedPlane::PaddedPlane(const PlaneWork& work, bool always_copied)
    : is_copied_(always_copied), stride_(work.passes.empty() ? 1 : work.passes[0].stride[2]) {
  set_extents(work);
  if (elements_ < most_elements) set_rows(work);
}

void PaddedPlane::set_extents(const PlaneWork& work) {
  bool is_inside = stride_ == 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
    for (const Pass& pass : work.passes)
      for (const Tap& tap : pass.taps) {
        least = std::min(least, tap.offset[axis]);
        most = std::max(most, tap.offset[axis] + (pass.grid[axis] - 1) * pass.stride[axis]);
      }
    if (least > most) least = most = 0;
    is_inside = is_inside && least >= 0 && most < work.in[axis];
    first_[axis] = least;
    extent_[axis] = most - least + 1;
  }
  phases_ = {0};
  is_copied_ = is_copied_ || !is_inside;
  if (!is_copied_) {
    first_ = {0, 0, 0};
    extent_ = work.in;
  } else if (stride_ > 1) {
    phases_.clear();
    for (const Pass& pass : work.passes)
      for (const Tap& tap : pass.taps) phases_.push_back((tap.offset[2] - first_[2]) % stride_);
    std::sort(phases_.begin(), phases_.end());
    phases_.erase(std::unique(phases_.begin(), phases_.end()), phases_.end());
    extent_[2] = ceil_div(extent_[2], stride_);
  }
  // Each factor is limited first: a padding may be far larger than any array.
  elements_ = static_cast<int64_t>(phases_.size());
  for (const int64_t extent : extent_) elements_ = std::min(elements_ * std::min(extent, most_elements), most_elements);
}

void PaddedPlane::set_rows(const PlaneWork& work) {
  std::array<std::vector<bool>, 2> is_read;
  for (size_t axis = 0; axis < 2; ++axis) {
    is_read[axis].resize(static_cast<size_t>(extent_[axis]), !is_copied_);
    for (const Pass& pass : work.passes)
      for (const Tap& tap : pass.taps)
        for (int64_t position = 0; position < pass.grid[axis]; ++position)
          is_read[axis][static_cast<size_t>(position * pass.stride[axis] + tap.offset[axis] - first_[axis])] = true;
  }
  const auto is_there = [&](size_t axis, int64_t position) {
    const int64_t element = position + first_[axis];
    return element >= 0 && element < work.in[axis] && is_read[axis][static_cast<size_t>(position)];
  };
  for (size_t phase = 0; phase < phases_.size(); ++phase) {
    const int64_t start = first_[2] + phases_[phase];
    const int64_t low = start < 0 ? ceil_div(-start, stride_) : 0;
    const int64_t high = start >= work.in[2] ? 0 : std::min(extent_[2], (work.in[2] - 1 - start) / stride_ + 1);
    if (low >= high) continue;
    for (int64_t d = 0; d < extent_[0]; ++d)
      for (int64_t h = 0; h < extent_[1]; ++h) {
        if (!is_there(0, d) || !is_there(1, h)) continue;
        const int64_t row = (d + first_[0]) * work.in[1] + h + first_[1];
        const int64_t to = ((static_cast<int64_t>(phase) * extent_[0] + d) * extent_[1] + h) * extent_[2];
        rows_.push_back({row * work.in[2] + start + low * stride_, to + low, high - low});
      }
  }
  // Adjacent rows in both planes are copied as one.
  if (stride_ > 1) return;
  std::vector<RowCopy> joined;
  for (const RowCopy& row : rows_) {
    const bool follows = !joined.empty() && joined.back().from + joined.back().count == row.from &&
                         joined.back().to + joined.back().count == row.to;
    if (follows)
      joined.back().count += row.count;
    else
      joined.push_back(row);
  }
  rows_ = std::move(joined);
}

Grid PaddedPlane::grid(const Pass& pass) const {
  return {pass.grid[0], pass.grid[1], pass.grid[2], pass.stride[0] * extent_[1] * extent_[2],
          pass.stride[1] * extent_[2]};
}

std::vector<int64_t> PaddedPlane::offsets(const Pass& pass) const {
  std::vector<int64_t> result;
  for (const Tap& tap : pass.taps) {
    const int64_t along = tap.offset[2] - first_[2];
    const int64_t phase = std::find(phases_.begin(), phases_.end(), along % stride_) - phases_.begin();
    const int64_t row = (phase * extent_[0] + tap.offset[0] - first_[0]) * extent_[1] + tap.offset[1] - first_[1];
    result.push_back(row * extent_[2] + along / stride_);
  }
  return result;
}

}  // namespace symbind::cpu_backend::depthwise
