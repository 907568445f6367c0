// Region proposals: a thread decodes a box, each image's boxes are sorted by their scores, and a block applies
// non-maximum suppression.
#include "symbind/backend/proposal.h"

#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/row_sort.h"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/suppress.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using boxes::Box;
using boxes::ProposalRule;
using boxes::ProposalSize;
using boxes::Scored;

constexpr size_t most_anchors = 64;  // that fit with the other arguments of a kernel

template <class C>
struct Anchors {
  Box<C> box[most_anchors];
};

std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : node.inputs) {
    if (tensor.layout != Layout::plain) return "needs plain layouts";
    if (tensor.shape.size() == 0) return "an array is empty";
  }
  if (node.inputs[0].shape[1] / 2 > static_cast<int64_t>(most_anchors)) return "more than 64 anchors in a position";
  return "";
}

template <class T, class C, class Key>
__global__ void decode_boxes(ProposalSize size, ProposalRule<C> rule, Anchors<C> anchors, const T* cls_prob,
                             const T* bbox_pred, const T* im_info, Scored<C>* all, Key* keys, int32_t* indices) {
  for (int64_t i = first_element(); i < size.images * size.boxes; i += element_step()) {
    const int64_t image = i / size.boxes, index = i % size.boxes;
    const T *const scores = cls_prob + image * 2 * size.boxes, *const deltas = bbox_pred + image * 4 * size.boxes;
    const T* const info = im_info + image * 3;
    all[i] = rule.at(
        index, anchors.box[index % size.anchors], [=](int64_t at) -> C { return load(scores[at]); },
        [=](int64_t at) -> C { return load(deltas[at]); }, [=](int at) -> C { return load(info[at]); });
    keys[i] = boxes::descending_key(all[i].score);
    indices[i] = static_cast<int32_t>(index);
  }
}

// The first `searched` boxes of each image in the order of their scores.
template <class C>
__global__ void gather_sorted(ProposalSize size, const Scored<C>* all, const int32_t* order, Scored<C>* sorted) {
  for (int64_t i = first_element(); i < size.images * size.searched; i += element_step()) {
    const int64_t image = i / size.searched, first = image * size.boxes;
    sorted[i] = all[first + order[first + i % size.searched]];
  }
}

template <class C>
struct PixelOverlap {
  const Scored<C>* sorted;
  int64_t stride;
  C threshold;

  __device__ int32_t count(int64_t) const { return static_cast<int32_t>(stride); }
  __device__ bool drops(int64_t image, int32_t a, int32_t b) const {
    const Scored<C>* const own = sorted + image * stride;
    return boxes::pixel_intersection_over_union(own[a].box, own[b].box) > threshold;
  }
};

template <class T, class C>
__global__ void write_proposals(ProposalSize size, const Scored<C>* sorted, const int32_t* left,
                                const int32_t* left_counts, T* rois, T* scores) {
  for (int64_t i = first_element(); i < size.images * size.wanted; i += element_step()) {
    const int64_t image = i / size.wanted, row = i % size.wanted, first = image * size.searched;
    const Scored<C> found = sorted[first + left[first + row % left_counts[image]]];
    T* const roi = rois + i * 5;
    roi[0] = store<T>(static_cast<C>(image));
    roi[1] = store<T>(found.box.x1);
    roi[2] = store<T>(found.box.y1);
    roi[3] = store<T>(found.box.x2);
    roi[4] = store<T>(found.box.y2);
    if (scores) scores[i] = store<T>(found.score);
  }
}

template <class T>
std::unique_ptr<Kernel> build_for(const NodeView& node, const Proposal& params) {
  using C = compute_type<T>;
  using Key = decltype(boxes::descending_key(C(0)));
  const ProposalSize size(params, node.inputs[0].shape);
  const ProposalRule<C> rule(params, size);
  const C threshold = static_cast<C>(static_cast<float>(params.threshold));
  Anchors<C> anchors{};
  const auto base = boxes::base_anchors<C>(params);
  std::copy(base.begin(), base.end(), anchors.box);
  const RowSort sort(size.images, size.boxes, sizeof(Key));
  ScratchLayout layout;
  const size_t sort_at = layout.add_bytes(sort.scratch_bytes());
  const size_t all_at = layout.add<Scored<C>>(size.images * size.boxes);
  const size_t sorted_at = layout.add<Scored<C>>(size.images * size.searched);
  const size_t left_at = layout.add<int32_t>(size.images * size.searched);
  const size_t counts_at = layout.add<int32_t>(size.images);
  const auto run = [=](const Args& args) {
    if (size.images * size.wanted == 0) return;
    const cudaStream_t stream = stream_of(args);
    void* const of_sort = scratch_at<std::byte>(args.scratch, sort_at);
    auto* const all = scratch_at<Scored<C>>(args.scratch, all_at);
    auto* const sorted = scratch_at<Scored<C>>(args.scratch, sorted_at);
    auto* const left = scratch_at<int32_t>(args.scratch, left_at);
    auto* const counts = scratch_at<int32_t>(args.scratch, counts_at);
    decode_boxes<<<blocks_for(size.images * size.boxes), block_size, 0, stream>>>(
        size, rule, anchors, args.in<T>(0), args.in<T>(1), args.in<T>(2), all, sort.keys<Key>(of_sort),
        sort.indices(of_sort));
    sort.run(stream, of_sort);
    gather_sorted<<<blocks_for(size.images * size.searched), block_size, 0, stream>>>(
        size, all, sort.sorted_indices(of_sort), sorted);
    queue_suppress(stream, PixelOverlap<C>{sorted, size.searched, threshold}, size.images, size.searched, size.wanted,
                   left, counts);
    write_proposals<<<blocks_for(size.images * size.wanted), block_size, 0, stream>>>(size, sorted, left, counts,
                                                                                      args.out<T>(0), args.out<T>(1));
  };
  return make_step(node, run, {.scratch_bytes = layout.total()});
}

template <class P>
std::unique_ptr<Kernel> build(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype,
                        [&]<class T>(std::type_identity<T>) { return build_for<T>(node, node.as<P>()); });
}

}  // namespace

void add_proposal(ImplementationTable& table) {
  table.add<Proposal>({"cuda", refuse, build<Proposal>});
  table.add<MultiProposal>({"cuda", refuse, build<MultiProposal>});
}

}  // namespace symbind::cuda_backend
