#include "symbind/backend/reduced_axes.h"

#include <utility>

namespace symbind {

std::vector<AxisView> reduced_one_by_one(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<std::pair<int64_t, bool>> axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool sums = reduced[static_cast<size_t>(axis)];
    if (shape[axis] == 1) continue;
    if (!axes.empty() && axes.back().second == sums)
      axes.back().first *= shape[axis];
    else
      axes.emplace_back(shape[axis], sums);
  }
  std::vector<AxisView> stages;
  for (size_t i = axes.size(); i-- > 0;) {
    if (!axes[i].second) continue;
    int64_t outer = 1, inner = 1;
    for (size_t j = 0; j < i; ++j) outer *= axes[j].first;
    for (size_t j = i + 1; j < axes.size(); ++j) inner *= axes[j].first;
    stages.push_back({outer, axes[i].first, inner});
    axes[i].first = 1;
  }
  return stages;
}

std::vector<bool> broadcast_axes(const Shape& data, const Shape& like) {
  std::vector<bool> broadcast;
  for (int axis = 0; axis < data.rank(); ++axis) {
    const int own = axis - (data.rank() - like.rank());
    broadcast.push_back(own < 0 || (like[own] == 1 && data[axis] != 1));
  }
  return broadcast;
}

}  // namespace symbind
