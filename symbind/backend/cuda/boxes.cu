#include "symbind/backend/boxes_ops.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/row_sort.h"
#include "symbind/backend/cuda/scratch_layout.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/cuda/suppress.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

using boxes::Box;
using boxes::Code;
using boxes::NmsRule;

std::string refuse(const NodeView& node) {
  for (const Tensor& tensor : node.inputs)
    if (tensor.layout != Layout::plain) return "needs plain layouts";
  return "";
}

template <class T>
__device__ auto reader(const T* from) {
  return [from](int64_t index) -> compute_type<T> { return load(from[index]); };
}

template <class T>
__device__ Box<compute_type<T>> box_at(const T* boxes, int64_t index, bool is_center) {
  using C = compute_type<T>;
  const T* const own = boxes + index * 4;
  const Box<C> box{load(own[0]), load(own[1]), load(own[2]), load(own[3])};
  return is_center ? corners_of_center(box) : box;
}

// ---- box_nms --------------------------------------------------------------------------------------------------------

// A box in the order of the scores; index: in its batch, -1 where it is not valid.
template <class C>
struct Candidate {
  Box<C> box;
  C id;
  int32_t index;
};

template <class T, class C, class Key>
__global__ void write_keys(NmsRule<C> rule, const T* data, Key* keys, int32_t* indices) {
  for (int64_t i = first_element(); i < rule.batches * rule.boxes; i += element_step()) {
    const T* const box = data + i * rule.numbers;
    keys[i] = rule.is_valid(reader(box)) ? boxes::descending_key(C(load(box[rule.score]))) : ~Key(0);
    indices[i] = static_cast<int32_t>(i % rule.boxes);
  }
}

template <class T, class C>
__global__ void gather_candidates(NmsRule<C> rule, const T* data, const int32_t* order, Candidate<C>* sorted) {
  for (int64_t i = first_element(); i < rule.batches * rule.most; i += element_step()) {
    const int64_t first = i / rule.most * rule.boxes;
    const int32_t index = order[first + i % rule.most];
    const auto read = reader(data + (first + index) * rule.numbers);
    sorted[i] = {rule.corners(read), rule.id >= 0 ? read(rule.id) : C(0), rule.is_valid(read) ? index : -1};
  }
}

template <class C>
struct NmsOverlap {
  NmsRule<C> rule;
  const Candidate<C>* sorted;

  // Valid ones are first.
  __device__ int32_t count(int64_t batch) const {
    int64_t low = 0, high = rule.most;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (sorted[batch * rule.most + middle].index >= 0)
        low = middle + 1;
      else
        high = middle;
    }
    return static_cast<int32_t>(low);
  }
  __device__ bool drops(int64_t batch, int32_t a, int32_t b) const {
    const Candidate<C>&first = sorted[batch * rule.most + a], &second = sorted[batch * rule.most + b];
    return rule.drops(first.box, first.id, second.box, second.id);
  }
};

template <class T, class C>
__global__ void write_boxes(NmsRule<C> rule, const T* data, const Candidate<C>* sorted, const int32_t* left,
                            const int32_t* left_counts, T* out, int32_t* indices) {
  for (int64_t i = first_element(); i < rule.batches * rule.boxes * rule.numbers; i += element_step()) {
    const int64_t number = i % rule.numbers, row = i / rule.numbers % rule.boxes;
    const int64_t batch = i / rule.numbers / rule.boxes;
    if (row >= left_counts[batch]) {
      out[i] = store<T>(C(-1));
      if (indices && number == 0) indices[batch * rule.boxes + row] = -1;
      continue;
    }
    const Candidate<C>& box = sorted[batch * rule.most + left[batch * rule.most + row]];
    const bool converts = rule.from_center != rule.to_center && number >= rule.coord && number < rule.coord + 4;
    out[i] = converts ? store<T>(rule.coordinate(box.box, number - rule.coord))
                      : data[(batch * rule.boxes + box.index) * rule.numbers + number];
    if (indices && number == 0) indices[batch * rule.boxes + row] = box.index;
  }
}

__global__ void count_up(int32_t* indices, int64_t count, int64_t length) {
  for (int64_t i = first_element(); i < count; i += element_step()) indices[i] = static_cast<int32_t>(i % length);
}

// Without boxes to search the output is the input.
std::unique_ptr<Kernel> build_copy(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  const int64_t length = data[data.rank() - 2], count = data.size(0, data.rank() - 1);
  return make_step(node, [=, bytes = node.outputs[0].bytes()](const Args& args) {
    if (bytes > 0) cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream_of(args));
    if (count > 0 && args.outputs[1])
      count_up<<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.out<int32_t>(1), count, length);
  });
}

template <class T>
std::unique_ptr<Kernel> build_nms_for(const NodeView& node) {
  using C = compute_type<T>;
  using Key = decltype(boxes::descending_key(C(0)));
  const NmsRule<C> rule(node.as<BoxNMS>(), node.inputs[0].shape);
  if (rule.batches * rule.most == 0) return build_copy(node);
  const RowSort sort(rule.batches, rule.boxes, sizeof(Key));
  ScratchLayout layout;
  const size_t sort_at = layout.add_bytes(sort.scratch_bytes());
  const size_t sorted_at = layout.add<Candidate<C>>(rule.batches * rule.most);
  const size_t left_at = layout.add<int32_t>(rule.batches * rule.most);
  const size_t counts_at = layout.add<int32_t>(rule.batches);
  const auto run = [=](const Args& args) {
    const cudaStream_t stream = stream_of(args);
    void* const of_sort = scratch_at<std::byte>(args.scratch, sort_at);
    auto* const sorted = scratch_at<Candidate<C>>(args.scratch, sorted_at);
    auto* const left = scratch_at<int32_t>(args.scratch, left_at);
    auto* const counts = scratch_at<int32_t>(args.scratch, counts_at);
    const T* const data = args.in<T>(0);
    const int64_t all = rule.batches * rule.boxes;
    write_keys<<<blocks_for(all), block_size, 0, stream>>>(rule, data, sort.keys<Key>(of_sort), sort.indices(of_sort));
    sort.run(stream, of_sort);
    gather_candidates<<<blocks_for(rule.batches * rule.most), block_size, 0, stream>>>(
        rule, data, sort.sorted_indices(of_sort), sorted);
    queue_suppress(stream, NmsOverlap<C>{rule, sorted}, rule.batches, rule.most, rule.most, left, counts);
    write_boxes<<<blocks_for(all * rule.numbers), block_size, 0, stream>>>(rule, data, sorted, left, counts,
                                                                           args.out<T>(0), args.out<int32_t>(1));
  };
  return make_step(node, run, {.scratch_bytes = layout.total()});
}

std::unique_ptr<Kernel> build_nms(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) { return build_nms_for<T>(node); });
}

// No two rows come from one box.
template <class T>
__global__ void scatter_rows(const T* dy, const int32_t* indices, T* dx, int64_t rows, int64_t boxes, int64_t numbers) {
  for (int64_t i = first_element(); i < rows * numbers; i += element_step()) {
    const int64_t row = i / numbers, index = indices[row];
    if (index >= 0 && index < boxes) dx[(row / boxes * boxes + index) * numbers + i % numbers] = dy[i];
  }
}

std::unique_ptr<Kernel> build_nms_gradient(const NodeView& node) {
  const Shape& data = node.outputs[0].shape;
  const int64_t boxes = data[data.rank() - 2], numbers = data[data.rank() - 1], rows = data.size(0, data.rank() - 1);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=, bytes = node.outputs[0].bytes()](const Args& args) {
      if (bytes == 0) return;
      cudaMemsetAsync(args.outputs[0], 0, bytes, stream_of(args));
      scatter_rows<<<blocks_for(rows * numbers), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<int32_t>(1),
                                                                                   args.out<T>(), rows, boxes, numbers);
    });
  });
}

// ---- box_iou --------------------------------------------------------------------------------------------------------

template <class T>
__global__ void overlaps(const T* lhs, const T* rhs, T* out, int64_t left, int64_t right, bool is_center) {
  for (int64_t i = first_element(); i < left * right; i += element_step())
    out[i] = store<T>(intersection_over_union(box_at(lhs, i / right, is_center), box_at(rhs, i % right, is_center)));
}

std::unique_ptr<Kernel> build_iou(const NodeView& node) {
  const int64_t left = node.inputs[0].shape.size() / 4, right = node.inputs[1].shape.size() / 4;
  const bool is_center = node.as<BoxIOU>().format == "center";
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=](const Args& args) {
      if (left * right == 0) return;
      overlaps<<<blocks_for(left * right), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<T>(1),
                                                                             args.out<T>(), left, right, is_center);
    });
  });
}

// ---- bipartite_matching ---------------------------------------------------------------------------------------------

// A pair with its score; index: row · columns + column, -1 where there is none.
template <class C>
struct Pair {
  C score;
  int64_t index;

  // Of equal scores the first is better.
  __device__ bool is_better_than(const Pair& other) const {
    return index >= 0 && (other.index < 0 || score > other.score || (score == other.score && index < other.index));
  }
};

// The best of one pair per thread; all threads get it.
template <class C>
__device__ Pair<C> best_of_block(Pair<C> best) {
  __shared__ Pair<C> of_warp[32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const auto combine = [&] {
    for (int offset = 16; offset > 0; offset /= 2) {
      const Pair<C> other{__shfl_xor_sync(0xffffffffu, best.score, offset),
                          __shfl_xor_sync(0xffffffffu, static_cast<long long>(best.index), offset)};
      if (other.is_better_than(best)) best = other;
    }
  };
  combine();
  __syncthreads();  // the values of an earlier call have been read
  if (lane == 0) of_warp[warp] = best;
  __syncthreads();
  best = lane < static_cast<int>(blockDim.x) / 32 ? of_warp[lane] : Pair<C>{C(0), -1};
  combine();
  return best;
}

// A block for each batch repeatedly takes the best remaining pair. `sign` is -1 where low scores are best.
template <class T>
__global__ void match_pairs(const T* scores, T* of_rows, T* of_columns, int64_t batches, int64_t rows, int64_t columns,
                            int64_t most, compute_type<T> threshold, compute_type<T> sign) {
  using C = compute_type<T>;
  for (int64_t batch = blockIdx.x; batch < batches; batch += gridDim.x) {
    const T* const own = scores + batch * rows * columns;
    T *const row_match = of_rows + batch * rows, *const column_match = of_columns + batch * columns;
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) row_match[i] = store<T>(C(-1));
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x) column_match[i] = store<T>(C(-1));
    __syncthreads();
    for (int64_t round = 0; round < most; ++round) {
      Pair<C> best{C(0), -1};
      for (int64_t i = threadIdx.x; i < rows * columns; i += blockDim.x) {
        const Pair<C> pair{sign * load(own[i]), i};
        if (!(pair.score > sign * threshold) || !pair.is_better_than(best)) continue;
        if (load(row_match[i / columns]) < C(0) && load(column_match[i % columns]) < C(0)) best = pair;
      }
      best = best_of_block(best);
      if (best.index < 0) break;
      __syncthreads();  // all have read the matches
      if (threadIdx.x == 0) {
        row_match[best.index / columns] = store<T>(static_cast<C>(best.index % columns));
        column_match[best.index % columns] = store<T>(static_cast<C>(best.index / columns));
      }
      __syncthreads();
    }
    __syncthreads();
  }
}

std::unique_ptr<Kernel> build_matching(const NodeView& node) {
  const auto& p = node.as<BipartiteMatching>();
  const Shape& data = node.inputs[0].shape;
  const int64_t batches = data.size(0, data.rank() - 2), rows = data[data.rank() - 2], columns = data[data.rank() - 1];
  const int64_t most = std::min({rows, columns, p.topk > 0 ? p.topk : rows});
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const C threshold = static_cast<float>(p.threshold), sign = p.is_ascend ? C(-1) : C(1);
    ScratchLayout layout;  // for an output that is not requested
    const size_t spare_rows = layout.add<T>(batches * rows), spare_columns = layout.add<T>(batches * columns);
    return make_step(node,
                     [=](const Args& args) {
                       if (batches == 0) return;
                       T* const of_rows = args.outputs[0] ? args.out<T>(0) : scratch_at<T>(args.scratch, spare_rows);
                       T* const of_columns =
                           args.outputs[1] ? args.out<T>(1) : scratch_at<T>(args.scratch, spare_columns);
                       match_pairs<<<blocks_for(batches, 1), 1024, 0, stream_of(args)>>>(
                           args.in<T>(0), of_rows, of_columns, batches, rows, columns, most, threshold, sign);
                     },
                     {.scratch_bytes = layout.total()});
  });
}

// ---- box_encode and box_decode --------------------------------------------------------------------------------------

template <class T>
struct EncodeArrays {
  const T *samples, *matches, *anchors, *refs, *means, *stds;
};

template <class T>
__global__ void encode_boxes(EncodeArrays<T> in, T* codes, T* masks, int64_t batches, int64_t anchors, int64_t refs) {
  using C = compute_type<T>;
  const boxes::EncodeRule<C> rule{anchors, refs};
  for (int64_t i = first_element(); i < batches * anchors; i += element_step()) {
    const int64_t batch = i / anchors;
    Code<C> code{C(0), C(0), C(0), C(0)};
    const bool counts =
        rule.code(i % anchors, reader(in.samples + batch * anchors), reader(in.matches + batch * anchors),
                  reader(in.anchors + batch * anchors * 4), reader(in.refs + batch * refs * 4), code);
    const C numbers[] = {code.x, code.y, code.width, code.height};
    for (int k = 0; k < 4; ++k) {
      const C value = counts ? (numbers[k] - load(in.means[k])) / load(in.stds[k]) : C(0);
      if (codes) codes[i * 4 + k] = store<T>(value);
      if (masks) masks[i * 4 + k] = store<T>(counts ? C(1) : C(0));
    }
  }
}

std::unique_ptr<Kernel> build_encode(const NodeView& node) {
  const Shape &anchors = node.inputs[2].shape, &refs = node.inputs[3].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [batches = anchors[0], count = anchors[1], boxes = refs[1]](const Args& args) {
      if (batches * count == 0) return;
      const EncodeArrays<T> in{args.in<T>(0), args.in<T>(1), args.in<T>(2),
                               args.in<T>(3), args.in<T>(4), args.in<T>(5)};
      encode_boxes<<<blocks_for(batches * count), block_size, 0, stream_of(args)>>>(in, args.out<T>(0), args.out<T>(1),
                                                                                    batches, count, boxes);
    });
  });
}

template <class T>
__global__ void decode_boxes(boxes::DecodeRule<compute_type<T>> rule, const T* data, const T* anchors, T* out,
                             int64_t count, int64_t boxes) {
  using C = compute_type<T>;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const T* const code = data + i * 4;
    const Box<C> box =
        rule(Code<C>{load(code[0]), load(code[1]), load(code[2]), load(code[3])}, box_at(anchors, i % boxes, false));
    out[i * 4] = store<T>(box.x1);
    out[i * 4 + 1] = store<T>(box.y1);
    out[i * 4 + 2] = store<T>(box.x2);
    out[i * 4 + 3] = store<T>(box.y2);
  }
}

std::unique_ptr<Kernel> build_decode(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const boxes::DecodeRule<compute_type<T>> rule(node.as<BoxDecode>());
    return make_step(node, [rule, count = data[0] * data[1], boxes = data[1]](const Args& args) {
      if (count == 0) return;
      decode_boxes<<<blocks_for(count), block_size, 0, stream_of(args)>>>(rule, args.in<T>(0), args.in<T>(1),
                                                                          args.out<T>(), count, boxes);
    });
  });
}

}  // namespace

void add_boxes(ImplementationTable& table) {
  table.add<BoxNMS>({"cuda", refuse, build_nms});
  table.add<BoxNMSGrad>({"cuda", refuse, build_nms_gradient});
  table.add<BoxIOU>({"cuda", refuse, build_iou});
  table.add<BipartiteMatching>({"cuda", refuse, build_matching});
  table.add<BoxEncode>({"cuda", refuse, build_encode});
  table.add<BoxDecode>({"cuda", refuse, build_decode});
}

}  // namespace symbind::cuda_backend
