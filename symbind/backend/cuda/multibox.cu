// Single-shot detection. A block matches the anchors and objects of an image; sorts by probability choose negatives and
// order detections.
#include "symbind/backend/multibox.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/row_sort.h"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/suppress.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using boxes::BestAnchor;
using boxes::Box;
using boxes::Code;
using boxes::Detection;
using boxes::DetectionRule;
using boxes::HalfSize;
using boxes::PriorRule;
using boxes::TargetRule;

constexpr int64_t most_sorted = (int64_t{1} << 31) - 1;

std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "needs plain layouts";
  return "";
}

template <class T>
__device__ auto reader(const T* from, int64_t stride = 1) {
  return [from, stride](int64_t index) -> compute_type<T> { return load(from[index * stride]); };
}

template <class T>
__device__ Box<compute_type<T>> box_at(const T* boxes, int64_t index) {
  const T* const own = boxes + index * 4;
  return {load(own[0]), load(own[1]), load(own[2]), load(own[3])};
}

// ---- MultiBoxPrior --------------------------------------------------------------------------------------------------

constexpr size_t most_sizes = 64;  // that fit with the other arguments of a kernel

template <class C>
struct Sizes {
  HalfSize<C> half[most_sizes];
};

template <class T>
__global__ void write_anchors(PriorRule<compute_type<T>> rule, Sizes<compute_type<T>> sizes, T* out, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const auto& half = sizes.half[i % rule.anchors];
    const auto box = rule.at(i / rule.anchors, half.width, half.height);
    out[i * 4] = store<T>(box.x1);
    out[i * 4 + 1] = store<T>(box.y1);
    out[i * 4 + 2] = store<T>(box.x2);
    out[i * 4 + 3] = store<T>(box.y2);
  }
}

std::string refuse_prior(const NodeView& node) {
  const auto& p = node.as<MultiBoxPrior>();
  if (p.sizes.size() + p.ratios.size() - 1 > most_sizes) return "more than 64 anchors in a position";
  if (node.outputs[0].shape.size() == 0) return "an array is empty";
  return "";
}

std::unique_ptr<Kernel> build_prior(const NodeView& node) {
  const auto& p = node.as<MultiBoxPrior>();
  const Shape& data = node.inputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const PriorRule<C> rule(p, data);
    Sizes<C> sizes{};
    size_t next = 0;
    boxes::for_prior_sizes<C>(p, data, [&](const HalfSize<C>& half) { sizes.half[next++] = half; });
    return make_step(node, [rule, sizes, count = node.outputs[0].shape[1]](const Args& args) {
      write_anchors<<<blocks_for(count), block_size, 0, stream_of(args)>>>(rule, sizes, args.out<T>(), count);
    });
  });
}

// ---- MultiBoxTarget -------------------------------------------------------------------------------------------------

template <class C>
__device__ BestAnchor<C> best_of_block(BestAnchor<C> best) {
  __shared__ BestAnchor<C> of_warp[32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const auto combine = [&] {
    for (int offset = 16; offset > 0; offset /= 2) {
      const BestAnchor<C> other{__shfl_xor_sync(0xffffffffu, best.overlap, offset),
                                __shfl_xor_sync(0xffffffffu, static_cast<long long>(best.anchor), offset)};
      if (other.anchor >= 0 && other.is_better_than(best)) best = other;
    }
  };
  combine();
  __syncthreads();  // the values of an earlier call have been read
  if (lane == 0) of_warp[warp] = best;
  __syncthreads();
  best = lane < static_cast<int>(blockDim.x) / 32 ? of_warp[lane] : BestAnchor<C>{C(0), -1};
  combine();
  return best;
}

// The anchor without an object that overlaps a box most; called by the whole block.
template <class T>
__device__ BestAnchor<compute_type<T>> best_anchor(int64_t anchors, const T* anchor, const Box<compute_type<T>>& box,
                                                   const int32_t* objects) {
  using C = compute_type<T>;
  BestAnchor<C> best{C(0), -1};
  for (int64_t i = threadIdx.x; i < anchors; i += blockDim.x) {
    if (objects[i] >= 0) continue;
    const BestAnchor<C> other{fractional_overlap(box_at(anchor, i), box), i};
    if (other.is_better_than(best)) best = other;
  }
  return best_of_block(best);
}

// Each of `count` objects takes an anchor, the pair with the largest overlap first; called by the whole block, whose
// threads all find the same pairs. `best` and `done` are scratch of one element per object.
template <class T, class C, class Read>
__device__ void take_best_anchors(const TargetRule<C>& rule, const T* anchor, const Read& read, int64_t count,
                                  int32_t* objects, BestAnchor<C>* best, bool* done) {
  for (int64_t k = 0; k < count; ++k) {
    const BestAnchor<C> found = best_anchor(rule.anchors, anchor, rule.object(read, k), objects);
    if (threadIdx.x == 0) {
      best[k] = found;
      done[k] = false;
    }
  }
  __syncthreads();
  for (int64_t round = 0; round < count; ++round) {
    int64_t next = -1;
    for (int64_t k = 0; k < count; ++k)
      if (!done[k] && best[k].anchor >= 0 && (next < 0 || best[k].is_better_than(best[next]))) next = k;
    if (next < 0 || !(best[next].overlap > TargetRule<C>::least_overlap)) break;
    const int64_t taken = best[next].anchor;
    __syncthreads();  // all have read what is changed now
    if (threadIdx.x == 0) {
      objects[taken] = static_cast<int32_t>(next);
      done[next] = true;
    }
    __syncthreads();
    for (int64_t k = 0; k < count; ++k) {
      if (done[k] || best[k].anchor != taken) continue;
      const BestAnchor<C> found = best_anchor(rule.anchors, anchor, rule.object(read, k), objects);
      if (threadIdx.x == 0) best[k] = found;  // best_anchor() synchronizes: the others have read it
      __syncthreads();
    }
  }
  __syncthreads();
}

// An anchor without an object takes the one that it overlaps most, if enough. Returns whether it is otherwise a
// candidate for a negative.
template <class C, class Read>
__device__ bool take_best_object(const TargetRule<C>& rule, const Box<C>& box, const Read& read, int64_t count,
                                 int32_t& object) {
  if (object >= 0 || count == 0) return false;
  int64_t most = 0;
  C largest = fractional_overlap(box, rule.object(read, 0));
  for (int64_t k = 1; k < count; ++k) {
    const C overlap = fractional_overlap(box, rule.object(read, k));
    if (overlap > largest) {
      largest = overlap;
      most = k;
    }
  }
  if (rule.overlap_threshold > C(0) && largest > rule.overlap_threshold) {
    object = static_cast<int32_t>(most);
    return false;
  }
  return largest < rule.mining_threshold;
}

// objects: the object of each anchor, -1 where it has none; negatives: how many an image gets, -1 where it has no
// objects. Keys, if there are any, sort the candidates for negatives first.
template <class T, class C, class Key>
__global__ void __launch_bounds__(1024)
    match_anchors(TargetRule<C> rule, const T* anchor, const T* label, const T* cls_pred, int32_t* objects,
                  BestAnchor<C>* best, bool* done, int32_t* negatives, Key* keys, int32_t* indices) {
  for (int64_t image = blockIdx.x; image < rule.images; image += gridDim.x) {
    const auto read = reader(label + image * rule.objects * rule.label_width);
    const int64_t count = rule.objects_of(read), first = image * rule.anchors;
    for (int64_t i = threadIdx.x; i < rule.anchors; i += blockDim.x) objects[first + i] = -1;
    __syncthreads();
    take_best_anchors(rule, anchor, read, count, objects + first, best + image * rule.objects,
                      done + image * rule.objects);
    int64_t positives = 0;
    for (int64_t i = threadIdx.x; i < rule.anchors; i += blockDim.x) {
      const bool candidate = take_best_object(rule, box_at(anchor, i), read, count, objects[first + i]);
      positives += objects[first + i] >= 0;
      if (!keys) continue;
      const T* const predictions = cls_pred + image * rule.classes * rule.anchors + i;
      keys[first + i] =
          candidate ? boxes::descending_key(-rule.background(reader(predictions, rule.anchors))) : ~Key(0);
      indices[first + i] = static_cast<int32_t>(i);
    }
    const auto all = static_cast<int64_t>(combine_block<Add>(static_cast<double>(positives)));
    if (threadIdx.x == 0) negatives[image] = count == 0 ? -1 : static_cast<int32_t>(rule.negatives(all));
    __syncthreads();
  }
}

// The marks of anchors without an object.
constexpr int32_t negative = -2;

// The candidates that come first become negatives. Where the probability is NaN the key is that of no candidate.
template <class Key>
__global__ void choose_negatives(int32_t* objects, const int32_t* negatives, const int32_t* order, const Key* keys,
                                 int64_t images, int64_t anchors) {
  for (int64_t i = first_element(); i < images * anchors; i += element_step()) {
    const int64_t image = i / anchors;
    if (i % anchors >= negatives[image]) continue;
    const int64_t chosen = image * anchors + order[i];
    if (keys[chosen] != ~Key(0)) objects[chosen] = negative;
  }
}

template <class T>
struct Targets {
  T *loc_target, *loc_mask, *cls_target;
};

template <class T, class C>
__global__ void write_targets(TargetRule<C> rule, const T* anchor, const T* label, const int32_t* objects,
                              const int32_t* negatives, Targets<T> out) {
  for (int64_t i = first_element(); i < rule.images * rule.anchors; i += element_step()) {
    const int64_t image = i / rule.anchors;
    const int32_t object = objects[i];
    C numbers[4] = {C(0), C(0), C(0), C(0)}, target = rule.ignore_label;
    if (object >= 0) {
      const auto read = reader(label + image * rule.objects * rule.label_width);
      const Code<C> code = encode(box_at(anchor, i % rule.anchors), rule.object(read, object));
      numbers[0] = code.x / rule.variances[0];
      numbers[1] = code.y / rule.variances[1];
      numbers[2] = code.width / rule.variances[2];
      numbers[3] = code.height / rule.variances[3];
      target = read(object * rule.label_width) + C(1);
    } else if (negatives[image] >= 0 && (object == negative || !rule.mines())) {
      target = C(0);
    }
    for (int k = 0; k < 4; ++k) {
      if (out.loc_target) out.loc_target[i * 4 + k] = store<T>(numbers[k]);
      if (out.loc_mask) out.loc_mask[i * 4 + k] = store<T>(object >= 0 ? C(1) : C(0));
    }
    if (out.cls_target) out.cls_target[i] = store<T>(target);
  }
}

std::string refuse_target(const NodeView& node) {
  const int64_t sorted = node.outputs[2].shape.size();
  if (sorted == 0 || sorted > most_sorted) return "an array is empty, or has 2^31 or more anchors";
  return refuse(node);
}

template <class T>
std::unique_ptr<Kernel> build_target_for(const NodeView& node) {
  using C = compute_type<T>;
  using Key = decltype(boxes::descending_key(C(0)));
  const TargetRule<C> rule(node.as<MultiBoxTarget>(), node.inputs[0].shape, node.inputs[1].shape, node.inputs[2].shape);
  const RowSort sort(rule.images, rule.anchors, sizeof(Key));
  ScratchLayout layout;
  const int64_t all = rule.images * rule.anchors;
  const size_t sort_at = layout.add_bytes(rule.mines() ? sort.scratch_bytes() : 0);
  const size_t objects_at = layout.add<int32_t>(all);
  const size_t best_at = layout.add<BestAnchor<C>>(rule.images * rule.objects);
  const size_t done_at = layout.add<bool>(rule.images * rule.objects);
  const size_t negatives_at = layout.add<int32_t>(rule.images);
  const auto run = [=](const Args& args) {
    const cudaStream_t stream = stream_of(args);
    void* const of_sort = scratch_at<std::byte>(args.scratch, sort_at);
    auto* const objects = scratch_at<int32_t>(args.scratch, objects_at);
    auto* const negatives = scratch_at<int32_t>(args.scratch, negatives_at);
    const T *const anchor = args.in<T>(0), *const label = args.in<T>(1);
    Key* const keys = rule.mines() ? sort.keys<Key>(of_sort) : nullptr;
    match_anchors<<<blocks_for(rule.images, 1), 1024, 0, stream>>>(
        rule, anchor, label, args.in<T>(2), objects, scratch_at<BestAnchor<C>>(args.scratch, best_at),
        scratch_at<bool>(args.scratch, done_at), negatives, keys, rule.mines() ? sort.indices(of_sort) : nullptr);
    if (rule.mines()) {
      sort.run(stream, of_sort);
      choose_negatives<<<blocks_for(all), block_size, 0, stream>>>(objects, negatives, sort.sorted_indices(of_sort),
                                                                   keys, rule.images, rule.anchors);
    }
    write_targets<<<blocks_for(all), block_size, 0, stream>>>(
        rule, anchor, label, objects, negatives, Targets<T>{args.out<T>(0), args.out<T>(1), args.out<T>(2)});
  };
  return make_step(node, run, {.scratch_bytes = layout.total()});
}

std::unique_ptr<Kernel> build_target(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype,
                        [&]<class T>(std::type_identity<T>) { return build_target_for<T>(node); });
}

// ---- MultiBoxDetection ----------------------------------------------------------------------------------------------

// Detections are written one after the other, in the order of the anchors: a block counts along them.
template <class T, class C, class Key>
__global__ void __launch_bounds__(1024)
    find_detections(DetectionRule<C> rule, const T* cls_prob, const T* loc_pred, const T* anchor, Detection<C>* found,
                    int32_t* counts, Key* keys, int32_t* indices) {
  __shared__ int32_t before[32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t image = blockIdx.x; image < rule.images; image += gridDim.x) {
    Detection<C>* const own = found + image * rule.anchors;
    int32_t written = 0;  // the same in all threads
    for (int64_t begin = 0; begin < rule.anchors; begin += blockDim.x) {
      const int64_t i = begin + threadIdx.x;
      Detection<C> best{C(-1), C(-1), {C(0), C(0), C(0), C(0)}};
      if (i < rule.anchors)
        best = rule.best_class(reader(cls_prob + image * rule.classes * rule.anchors + i, rule.anchors));
      const bool is_found = best.id >= C(0);
      const unsigned in_warp = __ballot_sync(0xffffffffu, is_found);
      if (lane == 0) before[warp] = __popc(in_warp);
      __syncthreads();
      int32_t at = written + __popc(in_warp & ((1u << lane) - 1u)), all = 0;
      for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) {
        if (w < warp) at += before[w];
        all += before[w];
      }
      if (is_found) {
        const T* const code = loc_pred + (image * rule.anchors + i) * 4;
        best.box = rule.located(box_at(anchor, i), load(code[0]), load(code[1]), load(code[2]), load(code[3]));
        own[at] = best;
        keys[image * rule.anchors + at] = boxes::descending_key(best.score);
      }
      written += all;
      __syncthreads();  // before the counts are overwritten
    }
    for (int64_t i = threadIdx.x; i < rule.anchors; i += blockDim.x) {
      if (i >= written) keys[image * rule.anchors + i] = ~Key(0);
      indices[image * rule.anchors + i] = static_cast<int32_t>(i);
    }
    if (threadIdx.x == 0) counts[image] = written;
  }
}

template <class C>
struct DetectionOverlap {
  DetectionRule<C> rule;
  const Detection<C>* found;
  const int32_t *order, *counts;

  __device__ int32_t count(int64_t image) const {
    return counts[image] < rule.most ? counts[image] : static_cast<int32_t>(rule.most);
  }
  __device__ const Detection<C>& at(int64_t image, int32_t index) const {
    return found[image * rule.anchors + order[image * rule.anchors + index]];
  }
  __device__ bool drops(int64_t image, int32_t a, int32_t b) const { return rule.drops(at(image, a), at(image, b)); }
};

// Is a number among the first `count` of an ascending list?
__device__ inline bool is_among(const int32_t* list, int32_t count, int32_t number) {
  int32_t low = 0, high = count;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (list[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && list[low] == number;
}

// `left` is null where nothing is suppressed.
template <class T, class C>
__global__ void write_detections(DetectionOverlap<C> all, const int32_t* left, const int32_t* left_counts, T* out) {
  const DetectionRule<C>& rule = all.rule;
  for (int64_t i = first_element(); i < rule.images * rule.anchors; i += element_step()) {
    const int64_t image = i / rule.anchors;
    const auto row = static_cast<int32_t>(i % rule.anchors);
    Detection<C> each{C(-1), C(-1), {C(-1), C(-1), C(-1), C(-1)}};
    if (row < all.counts[image]) {
      const bool sorted = left && row < all.count(image);
      each = sorted ? all.at(image, row) : all.found[i];
      if (left && !(sorted && is_among(left + image * rule.anchors, left_counts[image], row))) each.id = C(-1);
    }
    T* const to = out + i * 6;
    to[0] = store<T>(each.id);
    to[1] = store<T>(each.score);
    to[2] = store<T>(each.box.x1);
    to[3] = store<T>(each.box.y1);
    to[4] = store<T>(each.box.x2);
    to[5] = store<T>(each.box.y2);
  }
}

std::string refuse_detection(const NodeView& node) {
  const int64_t sorted = node.outputs[0].shape.size() / 6;
  if (sorted == 0 || sorted > most_sorted) return "an array is empty, or has 2^31 or more anchors";
  return refuse(node);
}

template <class T>
std::unique_ptr<Kernel> build_detection_for(const NodeView& node) {
  using C = compute_type<T>;
  using Key = decltype(boxes::descending_key(C(0)));
  const DetectionRule<C> rule(node.as<MultiBoxDetection>(), node.inputs[0].shape);
  const RowSort sort(rule.images, rule.anchors, sizeof(Key));
  ScratchLayout layout;
  const int64_t all = rule.images * rule.anchors;
  const size_t sort_at = layout.add_bytes(sort.scratch_bytes());
  const size_t found_at = layout.add<Detection<C>>(all);
  const size_t left_at = layout.add<int32_t>(all);
  const size_t counts_at = layout.add<int32_t>(2 * rule.images);
  const auto run = [=](const Args& args) {
    const cudaStream_t stream = stream_of(args);
    void* const of_sort = scratch_at<std::byte>(args.scratch, sort_at);
    auto* const found = scratch_at<Detection<C>>(args.scratch, found_at);
    auto* const counts = scratch_at<int32_t>(args.scratch, counts_at);
    int32_t* const left = rule.suppresses() ? scratch_at<int32_t>(args.scratch, left_at) : nullptr;
    find_detections<<<blocks_for(rule.images, 1), 1024, 0, stream>>>(rule, args.in<T>(0), args.in<T>(1), args.in<T>(2),
                                                                     found, counts, sort.keys<Key>(of_sort),
                                                                     sort.indices(of_sort));
    const DetectionOverlap<C> overlap{rule, found, sort.sorted_indices(of_sort), counts};
    if (left) {
      sort.run(stream, of_sort);
      queue_suppress(stream, overlap, rule.images, rule.anchors, rule.anchors, left, counts + rule.images);
    }
    write_detections<<<blocks_for(all), block_size, 0, stream>>>(overlap, left, counts + rule.images, args.out<T>());
  };
  return make_step(node, run, {.scratch_bytes = layout.total()});
}

std::unique_ptr<Kernel> build_detection(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype,
                        [&]<class T>(std::type_identity<T>) { return build_detection_for<T>(node); });
}

}  // namespace

void add_multibox(ImplementationTable& table) {
  table.add<MultiBoxPrior>({"cuda", refuse_prior, build_prior});
  table.add<MultiBoxTarget>({"cuda", refuse_target, build_target});
  table.add<MultiBoxDetection>({"cuda", refuse_detection, build_detection});
}

}  // namespace symbind::cuda_backend
