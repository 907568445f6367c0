#include "symbind/ops/split.h"

#include <algorithm>

#include "symbind/graph/define.h"
#include "symbind/ops/concat.h"
#include "symbind/ops/reshape.h"

namespace symbind {
namespace {

size_t parts_of(const SplitV2& p) { return p.sections > 0 ? static_cast<size_t>(p.sections) : p.indices.get().size(); }

std::string part_name(const SplitV2& p, size_t index) {
  return parts_of(p) == 1 ? "output" : "output" + std::to_string(index);
}

Shape part_shape(const SplitV2& p, const Shape& data, int axis, int64_t extent, const std::string& where) {
  if (!p.squeeze_axis) return data.with(axis, extent);
  require(extent == 1 || extent == unknown_dim, where, " squeeze_axis needs parts of extent 1: a part has ", extent);
  Shape result = Shape::of_rank(0);
  for (int i = 0; i < data.rank(); ++i)
    if (i != axis) result.push_back(data[i]);
  return result.rank() == 0 ? Shape{1} : result;
}

void infer(const SplitV2& p, Shapes& s) {
  auto data = s["data"];
  if (!data.rank_known()) return;
  const int axis = data.get().axis(p.axis, s.where());
  std::vector<SplitRange> ranges;
  if (data[axis] != unknown_dim) ranges = ranges_of(p, data[axis], s.where());
  for (size_t i = 0; i < s.outputs(); ++i) {
    const int64_t extent = ranges.empty() ? unknown_dim : ranges[i].end - ranges[i].begin;
    s.output(i).meet(part_shape(p, data, axis, extent, s.where()));
  }
  // Other axes are known from any part.
  for (size_t i = 0; i < s.outputs(); ++i)
    for (int k = 0; k < data.rank(); ++k) {
      if (k == axis) continue;
      const int own = p.squeeze_axis && k > axis ? k - 1 : k;
      if (!p.squeeze_axis || data.rank() > 1) data.meet_dim(k, s.output(i)[own]);
    }
}

OpDef define(Op<SplitV2> op) {
  return op
      .doc(
          "Splits an array along an axis: into sections equal parts, or with part i from indices[i] to indices[i + 1], "
          "the last one to the end. The first index is 0.")
      .param(&SplitV2::indices, "indices", "where each part begins, in ascending order from 0; () with sections",
             each_at_least(0))
      .param(&SplitV2::axis, "axis", "axis to split; negative ones count from the end")
      .param(&SplitV2::squeeze_axis, "squeeze_axis", "remove the axis from the outputs; every part must have extent 1")
      .param(&SplitV2::sections, "sections", "number of equal parts; 0: by indices", between(0, 1 << 20))
      .check([](SplitV2& p) {
        const Tuple& indices = p.indices;
        require(p.sections > 0 || !indices.empty(), "either sections or indices must be given");
        if (p.sections > 0) return;
        require(indices[0] == 0, "the first part begins at 0: indices ", print(indices));
        if (!std::ranges::is_sorted(indices)) fail("indices must be in ascending order: indices ", print(indices));
      })
      .memory_bound()
      .outputs(parts_of, part_name)
      .infer_shape(infer)
      .pieces_of_input([](const SplitV2& p, std::span<const Shape> inputs, std::span<const Shape> outputs) {
        std::vector<int64_t> begins;
        const Shape& data = inputs[0];
        if (data.size(0, data.axis(p.axis, "split_v2")) != 1) return begins;
        for (int64_t begin = 0; const Shape& part : outputs) {
          begins.push_back(begin);
          begin += part.size();
        }
        return begins;
      })
      .gradient([](const SplitV2& p, Grad& g) {
        std::vector<Symbol> grads;
        for (size_t i = 0; i < parts_of(p); ++i) {
          const Symbol dy = g.out_grad(i);
          grads.push_back(p.squeeze_axis ? expand_dims(dy, {.axis = p.axis}) : dy);
        }
        g.set("data", reshape_like(concat(grads, {.dim = p.axis}), g.input("data")));
      });
}

}  // namespace

std::vector<SplitRange> ranges_of(const SplitV2& p, int64_t extent, const std::string& where) {
  std::vector<SplitRange> ranges;
  require(p.sections == 0 || extent % p.sections == 0, where, " sections must divide the extent of the axis: sections ",
          p.sections, ", extent ", extent);
  for (size_t i = 0; i < parts_of(p); ++i) {
    const auto number = static_cast<int64_t>(i);
    if (p.sections > 0) {
      const int64_t length = extent / p.sections;
      ranges.push_back({number * length, (number + 1) * length});
      continue;
    }
    const Tuple& indices = p.indices;
    const SplitRange range{indices[i], i + 1 < indices.size() ? indices[i + 1] : extent};
    require(range.begin <= range.end && range.end <= extent, where, " part ", i, " from ", range.begin, " to ",
            range.end, " is not inside an axis of extent ", extent);
    ranges.push_back(range);
  }
  return ranges;
}

void register_split(OpRegistry& registry) { add<SplitV2>(registry, "_split_v2", define); }

}  // namespace symbind
