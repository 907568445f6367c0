// Slices move elements whatever they mean, so they know only their size. The innermost axes that are taken whole count
// as one element.
#include "symbind/ops/slice.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/cpu/convert.h"
#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {
namespace {

// The slice as rows: along a row, `length` pieces of `piece` bytes each, `step` bytes apart in the whole array and
// without gaps in the part.
class SliceRows {
 public:
  SliceRows(const Shape& whole, const SliceRange& range, DType dtype) {
    const auto strides = whole.strides();
    int axes = whole.rank();
    const auto element = static_cast<int64_t>(size_of(dtype));
    piece_ = element;
    const auto is_whole = [&](int axis) {
      const auto i = static_cast<size_t>(axis);
      return range.step[i] == 1 && range.shape[axis] == whole[axis];
    };
    while (axes > 1 && is_whole(axes - 1)) piece_ *= whole[--axes];
    const auto last = static_cast<size_t>(axes - 1);
    length_ = range.shape[axes - 1];
    step_ = range.step[last] * strides[last] * element;
    if (step_ == piece_) {
      piece_ *= length_;
      length_ = 1;
    }
    for (int axis = 0; axis < axes; ++axis) {
      const auto i = static_cast<size_t>(axis);
      start_ += range.start[i] * strides[i] * element;
      if (axis + 1 == axes) break;
      extents_.push_back(range.shape[axis]);
      steps_.push_back(range.step[i] * strides[i] * element);
      rows_ *= range.shape[axis];
    }
  }

  // Calls move(address in the whole array, address in the part, bytes) for each piece.
  template <class Move>
  void for_pieces(std::byte* whole, std::byte* part, Move move) const {
    const int64_t row_bytes = piece_ * length_;
    parallel_for(rows_, std::max<int64_t>(1, element_grain * 4 / std::max<int64_t>(1, row_bytes)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     std::byte* at = whole + start_ + offset_of(row);
                     std::byte* packed = part + row * row_bytes;
                     for (int64_t i = 0; i < length_; ++i) move(at + i * step_, packed + i * piece_);
                   }
                 });
  }
  size_t piece() const { return static_cast<size_t>(piece_); }

 private:
  int64_t offset_of(int64_t row) const {
    int64_t offset = 0;
    for (size_t axis = extents_.size(); axis-- > 0;) {
      offset += row % extents_[axis] * steps_[axis];
      row /= extents_[axis];
    }
    return offset;
  }

  std::vector<int64_t> extents_, steps_;
  int64_t rows_ = 1, length_ = 1, step_ = 0, piece_ = 0, start_ = 0;
};

// Copies pieces between the whole and the part; the usual sizes of single elements become plain loads and stores.
template <class Copy>
void visit_copy(size_t piece, Copy copy) {
  switch (piece) {
    case 1:
      return copy(std::integral_constant<size_t, 1>{});
    case 2:
      return copy(std::integral_constant<size_t, 2>{});
    case 4:
      return copy(std::integral_constant<size_t, 4>{});
    case 8:
      return copy(std::integral_constant<size_t, 8>{});
    default:
      return copy(piece);
  }
}
void take(const SliceRows& rows, const void* whole, void* part) {
  visit_copy(rows.piece(), [&](auto bytes) {
    rows.for_pieces(static_cast<std::byte*>(const_cast<void*>(whole)), static_cast<std::byte*>(part),
                    [bytes](const std::byte* at, std::byte* packed) { std::memcpy(packed, at, bytes); });
  });
}
void put(const SliceRows& rows, void* whole, const void* part) {
  visit_copy(rows.piece(), [&](auto bytes) {
    rows.for_pieces(static_cast<std::byte*>(whole), static_cast<std::byte*>(const_cast<void*>(part)),
                    [bytes](std::byte* at, const std::byte* packed) { std::memcpy(at, packed, bytes); });
  });
}

template <class P>
SliceRange range_of_slice(const NodeView& node, const Shape& whole) {
  const P& p = node.as<P>();
  return resolve_slice(whole, p.begin, p.end, p.step, node.where());
}

template <class P>
SliceRows rows_of(const NodeView& node, const Tensor& whole) {
  return {whole.shape, range_of_slice<P>(node, whole.shape), whole.dtype};
}

// Output 0 is the slice of input 0.
std::unique_ptr<Kernel> build_part(const NodeView& node, const SliceRange& range) {
  if (node.outputs[0].shape.size() == 0) return make_kernel([](const Args&) {});
  return make_kernel([rows = SliceRows(node.inputs[0].shape, range, node.inputs[0].dtype)](const Args& args) {
    take(rows, args.inputs[0], args.outputs[0]);
  });
}

// Output 0 is zero, with input 0 in the place of the slice.
std::unique_ptr<Kernel> build_in_zeros(const NodeView& node, const SliceRange& range) {
  if (node.outputs[0].shape.size() == 0) return make_kernel([](const Args&) {});
  return make_kernel([rows = SliceRows(node.outputs[0].shape, range, node.outputs[0].dtype),
                      bytes = node.outputs[0].bytes(), empty = node.inputs[0].shape.size() == 0](const Args& args) {
    std::memset(args.outputs[0], 0, bytes);
    if (!empty) put(rows, args.outputs[0], args.inputs[0]);
  });
}

std::unique_ptr<Kernel> build_slice_assign(const NodeView& node) {
  if (node.outputs[0].shape.size() == 0) return make_kernel([](const Args&) {});
  return make_kernel(
      [rows = rows_of<SliceAssign>(node, node.outputs[0]), bytes = node.outputs[0].bytes()](const Args& args) {
        if (args.outputs[0] != args.inputs[0]) std::memcpy(args.outputs[0], args.inputs[0], bytes);
        put(rows, args.outputs[0], args.inputs[1]);
      },
      {.in_place = {{0, 0}}});
}

std::unique_ptr<Kernel> build_slice_assign_scalar(const NodeView& node) {
  if (node.outputs[0].shape.size() == 0) return make_kernel([](const Args&) {});
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel(
        [rows = rows_of<SliceAssignScalar>(node, node.outputs[0]), bytes = node.outputs[0].bytes(),
         value = convert<T>(node.as<SliceAssignScalar>().scalar)](const Args& args) {
          auto* out = args.out<std::byte>();
          if (args.outputs[0] != args.inputs[0]) std::memcpy(out, args.inputs[0], bytes);
          const size_t count = rows.piece() / sizeof(T);
          rows.for_pieces(out, out,
                          [=](std::byte* at, std::byte*) { std::fill_n(reinterpret_cast<T*>(at), count, value); });
        },
        {.in_place = {{0, 0}}});
  });
}

}  // namespace

void add_slice(ImplementationTable& table) {
  add_plain<Slice>(
      table, [](const NodeView& node) { return build_part(node, range_of_slice<Slice>(node, node.inputs[0].shape)); });
  add_plain<SliceGrad>(table, [](const NodeView& node) {
    return build_in_zeros(node, range_of_slice<SliceGrad>(node, node.outputs[0].shape));
  });
  add_plain<SliceAxis>(table, [](const NodeView& node) {
    return build_part(node, range_of(node.as<SliceAxis>(), node.inputs[0].shape, node.where()));
  });
  add_plain<SliceAxisGrad>(table, [](const NodeView& node) {
    return build_in_zeros(node, range_of(node.as<SliceAxisGrad>(), node.outputs[0].shape, node.where()));
  });
  add_plain<SliceLike>(table, [](const NodeView& node) {
    return build_part(node, range_of(node.as<SliceLike>(), node.inputs[0].shape, node.inputs[1].shape, node.where()));
  });
  add_plain<SliceLikeGrad>(table, [](const NodeView& node) {
    return build_in_zeros(
        node, range_of(node.as<SliceLikeGrad>(), node.outputs[0].shape, node.inputs[2].shape, node.where()));
  });
  add_plain<Crop>(table, [](const NodeView& node) {
    return build_part(node, range_of(node.as<Crop>(), node.inputs[0].shape, node.outputs[0].shape, node.where()));
  });
  add_plain<CropGrad>(table, [](const NodeView& node) {
    return build_in_zeros(node,
                          range_of(node.as<CropGrad>(), node.outputs[0].shape, node.inputs[0].shape, node.where()));
  });
  add_plain<SliceAssign>(table, build_slice_assign);
  add_plain<SliceAssignScalar>(table, build_slice_assign_scalar);
}

}  // namespace symbind::cpu_backend
