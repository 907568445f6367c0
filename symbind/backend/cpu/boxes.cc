#include <algorithm>

#include "symbind/backend/boxes_ops.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/suppress.h"
#include "symbind/backend/cpu/widened.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace boxes;

// ---- box_nms --------------------------------------------------------------------------------------------------------

// The remaining boxes of one batch, as indices in the order of their scores. Boxes are read as C.
template <class C, class T>
std::vector<int32_t> boxes_left(const NmsRule<C>& rule, const T* data) {
  const auto number = [=](int64_t box, int64_t index) { return static_cast<C>(data[box * rule.numbers + index]); };
  std::vector<int32_t> valid;
  for (int64_t i = 0; i < rule.boxes; ++i)
    if (rule.is_valid([=](int64_t index) { return number(i, index); })) valid.push_back(static_cast<int32_t>(i));
  const auto order = best_first(static_cast<int64_t>(valid.size()), rule.most,
                                [&](int64_t i) { return number(valid[static_cast<size_t>(i)], rule.score); });
  struct Candidate {
    Box<C> box;
    C id;
    int32_t index;
  };
  std::vector<Candidate> sorted;
  for (const int32_t i : order) {
    const int32_t box = valid[static_cast<size_t>(i)];
    sorted.push_back({rule.corners([=](int64_t index) { return number(box, index); }),
                      rule.id >= 0 ? number(box, rule.id) : C(0), box});
  }
  const auto left = suppress(static_cast<int64_t>(sorted.size()), rule.boxes, [&](int64_t a, int64_t b) {
    const Candidate &first = sorted[static_cast<size_t>(a)], &second = sorted[static_cast<size_t>(b)];
    return rule.drops(first.box, first.id, second.box, second.id);
  });
  std::vector<int32_t> result;
  for (const int32_t i : left) result.push_back(sorted[static_cast<size_t>(i)].index);
  return result;
}

// A row of the output.
template <class C, class T>
void write_box(const NmsRule<C>& rule, const T* from, T* to) {
  std::copy(from, from + rule.numbers, to);
  if (rule.from_center == rule.to_center) return;
  const Box<C> box = rule.corners([=](int64_t index) { return static_cast<C>(from[index]); });
  for (int64_t i = 0; i < 4; ++i) to[rule.coord + i] = static_cast<T>(rule.coordinate(box, i));
}

template <class C, class T>
void suppress_batch(const NmsRule<C>& rule, const T* data, T* out, int32_t* indices) {
  const auto left = boxes_left(rule, data);
  for (int64_t row = 0; row < rule.boxes; ++row) {
    const int32_t box = row < static_cast<int64_t>(left.size()) ? left[static_cast<size_t>(row)] : -1;
    T* const to = out + row * rule.numbers;
    if (box >= 0)
      write_box(rule, data + box * rule.numbers, to);
    else
      std::fill(to, to + rule.numbers, T(-1));
    if (indices) indices[row] = box;
  }
}

std::unique_ptr<Kernel> build_nms(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = compute_type<T>;
    const NmsRule<C> rule(node.as<BoxNMS>(), node.inputs[0].shape);
    return make_kernel([rule](const Args& args) {
      const T* const data = args.in<T>(0);
      T* const out = args.out<T>(0);
      int32_t* const indices = args.out<int32_t>(1);
      const int64_t batch = rule.boxes * rule.numbers;
      if (rule.most == 0) {
        std::copy(data, data + rule.batches * batch, out);
        for (int64_t i = 0; indices && i < rule.batches * rule.boxes; ++i)
          indices[i] = static_cast<int32_t>(i % rule.boxes);
        return;
      }
      parallel_for(rule.batches, element_grain / 64 / (batch + 1) + 1, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          suppress_batch(rule, data + i * batch, out + i * batch, indices ? indices + i * rule.boxes : nullptr);
      });
    });
  });
}

std::unique_ptr<Kernel> build_nms_grad(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    const NmsRule<compute_type<T>> rule(node.as<BoxNMSGrad>(), node.outputs[0].shape);
    return make_kernel([rule](const Args& args) {
      const T* const dy = args.in<T>(0);
      const int32_t* const indices = args.in<int32_t>(1);
      T* const dx = args.out<T>();
      std::fill(dx, dx + rule.batches * rule.boxes * rule.numbers, T(0));
      parallel_for(rule.batches * rule.boxes, element_grain / (rule.numbers + 1) + 1, [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          if (indices[row] < 0 || indices[row] >= rule.boxes) continue;
          const T* const from = dy + row * rule.numbers;
          std::copy(from, from + rule.numbers, dx + (row / rule.boxes * rule.boxes + indices[row]) * rule.numbers);
        }
      });
    });
  });
}

// ---- box_iou --------------------------------------------------------------------------------------------------------

template <class C>
Box<C> box_at(const C* boxes, int64_t index, bool is_center) {
  const C* const own = boxes + index * 4;
  const Box<C> box{own[0], own[1], own[2], own[3]};
  return is_center ? corners_of_center(box) : box;
}

std::unique_ptr<Kernel> build_iou(const NodeView& node) {
  const int64_t left = node.inputs[0].shape.size() / 4, right = node.inputs[1].shape.size() / 4;
  const bool is_center = node.as<BoxIOU>().format == "center";
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      parallel_for(left, element_grain / 16 / (right + 1) + 1, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Box<C> box = box_at(in[0], i, is_center);
          for (int64_t k = 0; k < right; ++k)
            out[0][i * right + k] = intersection_over_union(box, box_at(in[1], k, is_center));
        }
      });
    };
  });
}

// ---- bipartite_matching ---------------------------------------------------------------------------------------------

template <class C>
void match(const BipartiteMatching& p, int64_t rows, int64_t columns, const C* scores, C* of_rows, C* of_columns) {
  const C threshold = static_cast<C>(static_cast<float>(p.threshold)), sign = p.is_ascend ? C(-1) : C(1);
  std::fill(of_rows, of_rows + rows, C(-1));
  std::fill(of_columns, of_columns + columns, C(-1));
  int64_t open = std::min(rows, columns);
  if (p.topk > 0) open = std::min(open, p.topk);
  const auto order = best_first(rows * columns, rows * columns, [=](int64_t i) { return sign * scores[i]; });
  for (const int32_t i : order) {
    if (open == 0 || !(sign * scores[i] > sign * threshold)) break;
    const int64_t row = i / columns, column = i % columns;
    if (of_rows[row] >= 0 || of_columns[column] >= 0) continue;
    of_rows[row] = static_cast<C>(column);
    of_columns[column] = static_cast<C>(row);
    --open;
  }
}

std::unique_ptr<Kernel> build_matching(const NodeView& node) {
  const auto p = node.as<BipartiteMatching>();
  const Shape& data = node.inputs[0].shape;
  const int64_t batches = data.size(0, data.rank() - 2), rows = data[data.rank() - 2], columns = data[data.rank() - 1];
  return widened_kernel(node, [=](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      parallel_for(batches, element_grain / 32 / (rows * columns + 1) + 1, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          match(p, rows, columns, in[0] + i * rows * columns, out[0] + i * rows, out[1] + i * columns);
      });
    };
  });
}

// ---- box_encode and box_decode --------------------------------------------------------------------------------------

template <class C>
auto reader(const C* from) {
  return [from](int64_t index) { return from[index]; };
}

std::unique_ptr<Kernel> build_encode(const NodeView& node) {
  const Shape &anchors = node.inputs[2].shape, &refs = node.inputs[3].shape;
  return widened_kernel(node, [batches = anchors[0], count = anchors[1], boxes = refs[1]](auto type) {
    using C = typename decltype(type)::type;
    return [=](const C* const* in, C* const* out) {
      const EncodeRule<C> rule{count, boxes};
      const C *const means = in[4], *const stds = in[5];
      parallel_for(batches * count, element_grain / 32, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t batch = i / count;
          Code<C> code{0, 0, 0, 0};
          const bool counts = rule.code(i % count, reader(in[0] + batch * count), reader(in[1] + batch * count),
                                        reader(in[2] + batch * count * 4), reader(in[3] + batch * boxes * 4), code);
          const C numbers[] = {code.x, code.y, code.width, code.height};
          for (int64_t k = 0; k < 4; ++k) {
            if (out[0]) out[0][i * 4 + k] = counts ? (numbers[k] - means[k]) / stds[k] : C(0);
            if (out[1]) out[1][i * 4 + k] = counts ? C(1) : C(0);
          }
        }
      });
    };
  });
}

std::unique_ptr<Kernel> build_decode(const NodeView& node) {
  const Shape& data = node.inputs[0].shape;
  return widened_kernel(node, [p = node.as<BoxDecode>(), batches = data[0], anchors = data[1]](auto type) {
    using C = typename decltype(type)::type;
    return [=, rule = DecodeRule<C>(p)](const C* const* in, C* const* out) {
      parallel_for(batches * anchors, element_grain / 32, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const C* const code = in[0] + i * 4;
          const Box<C> box = rule(Code<C>{code[0], code[1], code[2], code[3]}, box_at(in[1], i % anchors, false));
          C* const to = out[0] + i * 4;
          to[0] = box.x1;
          to[1] = box.y1;
          to[2] = box.x2;
          to[3] = box.y2;
        }
      });
    };
  });
}

}  // namespace

void add_boxes(ImplementationTable& table) {
  add_plain<BoxNMS>(table, build_nms);
  add_plain<BoxNMSGrad>(table, build_nms_grad);
  add_plain<BoxIOU>(table, build_iou);
  add_plain<BipartiteMatching>(table, build_matching);
  add_plain<BoxEncode>(table, build_encode);
  add_plain<BoxDecode>(table, build_decode);
}

}  // namespace symbind::cpu_backend
