#include "symbind/backend/multibox.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/suppress.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace boxes;

template <class C>
Box<C> box_at(const C* boxes, int64_t index) {
  const C* const own = boxes + index * 4;
  return {own[0], own[1], own[2], own[3]};
}

// ---- MultiBoxPrior --------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_prior(const NodeView& node) {
  const auto& p = node.as<MultiBoxPrior>();
  const Shape& data = node.inputs[0].shape;
  return widened_kernel(node, [&, positions = data[2] * data[3]](auto type) {
    using C = typename decltype(type)::type;
    std::vector<HalfSize<C>> sizes;
    for_prior_sizes<C>(p, data, [&](const HalfSize<C>& size) { sizes.push_back(size); });
    return [=, rule = PriorRule<C>(p, data)](const C* const*, C* const* out) {
      C* to = out[0];
      for (int64_t position = 0; position < positions; ++position)
        for (const HalfSize<C>& size : sizes) {
          const Box<C> box = rule.at(position, size.width, size.height);
          *to++ = box.x1;
          *to++ = box.y1;
          *to++ = box.x2;
          *to++ = box.y2;
        }
    };
  });
}

// ---- MultiBoxTarget -------------------------------------------------------------------------------------------------

// The anchors of one image: the object assigned to each (-1: none), and its largest overlap with any object.
template <class C>
class Matches {
 public:
  Matches(const TargetRule<C>& rule, const C* anchor, const C* label)
      : rule_(rule),
        objects_(rule.objects_of([=](int64_t i) { return label[i]; })),
        overlaps_(static_cast<size_t>(rule.anchors * objects_)),
        object(static_cast<size_t>(rule.anchors), -1),
        largest(static_cast<size_t>(rule.anchors), C(-1)) {
    for (int64_t i = 0; i < rule.anchors; ++i)
      for (int64_t k = 0; k < objects_; ++k) {
        const Box<C> box = rule.object([=](int64_t at) { return label[at]; }, k);
        overlaps_[static_cast<size_t>(i * objects_ + k)] = fractional_overlap(box_at(anchor, i), box);
      }
    take_best_anchors();
    take_best_objects();
  }
  bool any_object() const { return objects_ > 0; }

 private:
  C overlap(int64_t anchor, int64_t of) const { return overlaps_[static_cast<size_t>(anchor * objects_ + of)]; }

  BestAnchor<C> best_anchor(int64_t of) const {
    BestAnchor<C> best{C(0), -1};
    for (int64_t i = 0; i < rule_.anchors; ++i) {
      if (object[static_cast<size_t>(i)] >= 0) continue;
      const BestAnchor<C> other{overlap(i, of), i};
      if (other.is_better_than(best)) best = other;
    }
    return best;
  }

  // Each object takes an anchor, the pair with the largest overlap first.
  void take_best_anchors() {
    std::vector<BestAnchor<C>> best;
    for (int64_t k = 0; k < objects_; ++k) best.push_back(best_anchor(k));
    std::vector<bool> done(best.size());
    for (int64_t round = 0; round < objects_; ++round) {
      int64_t next = -1;
      for (int64_t k = 0; k < objects_; ++k) {
        if (done[static_cast<size_t>(k)] || best[static_cast<size_t>(k)].anchor < 0) continue;
        if (next < 0 || best[static_cast<size_t>(k)].is_better_than(best[static_cast<size_t>(next)])) next = k;
      }
      if (next < 0 || !(best[static_cast<size_t>(next)].overlap > rule_.least_overlap)) return;
      const int64_t taken = best[static_cast<size_t>(next)].anchor;
      object[static_cast<size_t>(taken)] = next;
      largest[static_cast<size_t>(taken)] = best[static_cast<size_t>(next)].overlap;
      done[static_cast<size_t>(next)] = true;
      for (int64_t k = 0; k < objects_; ++k)
        if (!done[static_cast<size_t>(k)] && best[static_cast<size_t>(k)].anchor == taken)
          best[static_cast<size_t>(k)] = best_anchor(k);
    }
  }

  // Each other anchor takes the object that it overlaps most, if enough.
  void take_best_objects() {
    for (int64_t i = 0; i < rule_.anchors; ++i) {
      if (object[static_cast<size_t>(i)] >= 0) continue;
      int64_t best = -1;
      for (int64_t k = 0; k < objects_; ++k)
        if (best < 0 || overlap(i, k) > overlap(i, best)) best = k;
      if (best < 0) continue;
      largest[static_cast<size_t>(i)] = overlap(i, best);
      if (rule_.overlap_threshold > C(0) && overlap(i, best) > rule_.overlap_threshold)
        object[static_cast<size_t>(i)] = best;
    }
  }

  const TargetRule<C>& rule_;
  int64_t objects_;
  std::vector<C> overlaps_;

 public:
  std::vector<int64_t> object;
  std::vector<C> largest;
};

// Which anchors of an image without an object are negatives.
template <class C>
std::vector<bool> negatives_of(const TargetRule<C>& rule, const Matches<C>& matches, const C* cls_pred) {
  const auto has_object = [&](int64_t i) { return matches.object[static_cast<size_t>(i)] >= 0; };
  std::vector<bool> negative(static_cast<size_t>(rule.anchors), false);
  int64_t positives = 0;
  for (int64_t i = 0; i < rule.anchors; ++i) {
    positives += has_object(i);
    negative[static_cast<size_t>(i)] = !has_object(i);
  }
  if (!rule.mines()) return negative;
  std::fill(negative.begin(), negative.end(), false);
  std::vector<int64_t> candidates;
  std::vector<C> background;
  for (int64_t i = 0; i < rule.anchors; ++i) {
    if (has_object(i) || !(matches.largest[static_cast<size_t>(i)] < rule.mining_threshold)) continue;
    const C probability = rule.background([=](int64_t k) { return cls_pred[k * rule.anchors + i]; });
    if (std::isnan(probability)) continue;
    candidates.push_back(i);
    background.push_back(probability);
  }
  const auto order = best_first(static_cast<int64_t>(candidates.size()), rule.negatives(positives),
                                [&](int64_t i) { return -background[static_cast<size_t>(i)]; });
  for (const int32_t i : order) negative[static_cast<size_t>(candidates[static_cast<size_t>(i)])] = true;
  return negative;
}

template <class C>
void write_targets(const TargetRule<C>& rule, const C* anchor, const C* label, const C* cls_pred, C* loc_target,
                   C* loc_mask, C* cls_target) {
  std::fill(loc_target, loc_target + 4 * rule.anchors, C(0));
  std::fill(loc_mask, loc_mask + 4 * rule.anchors, C(0));
  std::fill(cls_target, cls_target + rule.anchors, rule.ignore_label);
  const Matches<C> matches(rule, anchor, label);
  if (!matches.any_object()) return;
  const auto negative = negatives_of(rule, matches, cls_pred);
  for (int64_t i = 0; i < rule.anchors; ++i) {
    const int64_t object = matches.object[static_cast<size_t>(i)];
    if (negative[static_cast<size_t>(i)]) cls_target[i] = 0;
    if (object < 0) continue;
    cls_target[i] = label[object * rule.label_width] + C(1);
    const Code<C> code = encode(box_at(anchor, i), rule.object([=](int64_t at) { return label[at]; }, object));
    const C numbers[] = {code.x, code.y, code.width, code.height};
    for (int64_t k = 0; k < 4; ++k) {
      loc_target[i * 4 + k] = numbers[k] / rule.variances[k];
      loc_mask[i * 4 + k] = 1;
    }
  }
}

std::unique_ptr<Kernel> build_target(const NodeView& node) {
  const auto& p = node.as<MultiBoxTarget>();
  const Shape &anchor = node.inputs[0].shape, &label = node.inputs[1].shape, &cls_pred = node.inputs[2].shape;
  // Scratch for outputs that are not requested.
  const int64_t spare = 9 * label[0] * anchor[1] + 1;
  return widened_kernel(
      node,
      [&](auto type) {
        using C = typename decltype(type)::type;
        return [rule = TargetRule<C>(p, anchor, label, cls_pred)](const C* const* in, C* const* out) {
          const int64_t all = rule.images * rule.anchors;
          C* const loc_target = out[0] ? out[0] : out[3];
          C* const loc_mask = out[1] ? out[1] : out[3] + 4 * all;
          C* const cls_target = out[2] ? out[2] : out[3] + 8 * all;
          parallel_for(rule.images, 1, [=, &rule](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              write_targets(rule, in[0], in[1] + i * rule.objects * rule.label_width,
                            in[2] + i * rule.classes * rule.anchors, loc_target + i * 4 * rule.anchors,
                            loc_mask + i * 4 * rule.anchors, cls_target + i * rule.anchors);
          });
        };
      },
      spare);
}

// ---- MultiBoxDetection ----------------------------------------------------------------------------------------------

template <class C>
std::vector<Detection<C>> detections(const DetectionRule<C>& rule, const C* cls_prob, const C* loc_pred,
                                     const C* anchor) {
  std::vector<Detection<C>> found;
  for (int64_t i = 0; i < rule.anchors; ++i) {
    Detection<C> best = rule.best_class([=](int64_t k) { return cls_prob[k * rule.anchors + i]; });
    if (best.id < C(0)) continue;
    const C* const code = loc_pred + i * 4;
    best.box = rule.located(box_at(anchor, i), code[0], code[1], code[2], code[3]);
    found.push_back(best);
  }
  return found;
}

// Sorts the best detections and marks those that others suppress; detections after the best are dropped in place.
template <class C>
void thin_out(const DetectionRule<C>& rule, std::vector<Detection<C>>& found) {
  const auto order = best_first(static_cast<int64_t>(found.size()), rule.most,
                                [&](int64_t i) { return found[static_cast<size_t>(i)].score; });
  std::vector<Detection<C>> sorted;
  for (const int32_t i : order) sorted.push_back(found[static_cast<size_t>(i)]);
  const auto count = static_cast<int64_t>(sorted.size());
  const auto left = suppress(count, count, [&](int64_t a, int64_t b) {
    return rule.drops(sorted[static_cast<size_t>(a)], sorted[static_cast<size_t>(b)]);
  });
  for (size_t i = 0; i < found.size(); ++i) {
    if (i < sorted.size()) found[i] = sorted[i];
    if (i >= sorted.size() || !std::binary_search(left.begin(), left.end(), static_cast<int32_t>(i))) found[i].id = -1;
  }
}

template <class C>
void write_detections(const DetectionRule<C>& rule, const C* cls_prob, const C* loc_pred, const C* anchor, C* out) {
  auto found = detections(rule, cls_prob, loc_pred, anchor);
  if (rule.suppresses()) thin_out(rule, found);
  std::fill(out, out + 6 * rule.anchors, C(-1));
  for (const Detection<C>& each : found) {
    const C row[] = {each.id, each.score, each.box.x1, each.box.y1, each.box.x2, each.box.y2};
    out = std::copy(row, row + 6, out);
  }
}

std::unique_ptr<Kernel> build_detection(const NodeView& node) {
  const auto& p = node.as<MultiBoxDetection>();
  return widened_kernel(node, [&](auto type) {
    using C = typename decltype(type)::type;
    return [rule = DetectionRule<C>(p, node.inputs[0].shape)](const C* const* in, C* const* out) {
      parallel_for(rule.images, 1, [=, &rule](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          write_detections(rule, in[0] + i * rule.classes * rule.anchors, in[1] + i * rule.anchors * 4, in[2],
                           out[0] + i * rule.anchors * 6);
      });
    };
  });
}

}  // namespace

void add_multibox(ImplementationTable& table) {
  add_plain<MultiBoxPrior>(table, build_prior);
  add_plain<MultiBoxTarget>(table, build_target);
  add_plain<MultiBoxDetection>(table, build_detection);
}

}  // namespace symbind::cpu_backend
