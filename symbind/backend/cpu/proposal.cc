#include "symbind/backend/proposal.h"

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/suppress.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace boxes;

template <class C>
void decode(const ProposalSize& size, const ProposalRule<C>& rule, const std::vector<Box<C>>& base, const C* const* in,
            Scored<C>* all) {
  parallel_for(size.images * size.boxes, element_grain / 32, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / size.boxes, index = i % size.boxes;
      const C *const scores = in[0] + image * 2 * size.boxes, *const deltas = in[1] + image * 4 * size.boxes;
      const C* const info = in[2] + image * 3;
      all[i] = rule.at(
          index, base[static_cast<size_t>(index % size.anchors)], [=](int64_t at) { return scores[at]; },
          [=](int64_t at) { return deltas[at]; }, [=](int at) { return info[at]; });
    }
  });
}

// The remaining boxes of one image, repeated to fill the output's rows.
template <class C>
void select(const ProposalSize& size, C threshold, int64_t image, const Scored<C>* all, C* rois, C* scores) {
  const auto order = best_first(size.boxes, size.searched, [=](int64_t i) { return all[i].score; });
  std::vector<Box<C>> sorted;
  for (const int32_t i : order) sorted.push_back(all[i].box);
  const auto left = suppress(size.searched, size.wanted, [&](int64_t a, int64_t b) {
    return pixel_intersection_over_union(sorted[static_cast<size_t>(a)], sorted[static_cast<size_t>(b)]) > threshold;
  });
  for (int64_t row = 0; row < size.wanted; ++row) {
    C* const roi = rois + row * 5;
    if (left.empty()) {
      std::fill(roi, roi + 5, C(0));
      roi[0] = static_cast<C>(image);
      if (scores) scores[row] = 0;
      continue;
    }
    const auto found = static_cast<size_t>(left[static_cast<size_t>(row) % left.size()]);
    const Box<C>& box = sorted[found];
    roi[0] = static_cast<C>(image);
    roi[1] = box.x1;
    roi[2] = box.y1;
    roi[3] = box.x2;
    roi[4] = box.y2;
    if (scores) scores[row] = all[order[found]].score;
  }
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  const Proposal params = node.as<P>();
  const ProposalSize size(params, node.inputs[0].shape);
  return widened_kernel(
      node,
      [=](auto type) {
        using C = typename decltype(type)::type;
        const auto base = base_anchors<C>(params);
        const ProposalRule<C> rule(params, size);
        const C threshold = static_cast<C>(static_cast<float>(params.threshold));
        return [=](const C* const* in, C* const* out) {
          auto* const all = reinterpret_cast<Scored<C>*>(out[2]);
          decode(size, rule, base, in, all);
          parallel_for(size.images, 1, [=](int64_t begin, int64_t end) {
            for (int64_t image = begin; image < end; ++image)
              select(size, threshold, image, all + image * size.boxes, out[0] + image * size.wanted * 5,
                     out[1] ? out[1] + image * size.wanted : nullptr);
          });
        };
      },
      size.images * size.boxes * 5 + 1);
}

}  // namespace

void add_proposal(ImplementationTable& table) {
  add_plain<Proposal>(table, build<Proposal>);
  add_plain<MultiProposal>(table, build<MultiProposal>);
}

}  // namespace symbind::cpu_backend
