#include "symbind/ops/concat.h"

#include <cstring>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {
namespace {

// The joined array as rows: everything before the axis counts rows, and a row holds so many bytes of each part.
struct Joints {
  int64_t rows = 1;
  std::vector<int64_t> bytes;
  int64_t row_bytes = 0;

  Joints(const Shape& whole, std::span<const Tensor> parts, int64_t dim) {
    const int axis = whole.axis(dim, "[Concat]");
    rows = whole.size(0, axis);
    for (const Tensor& part : parts) {
      bytes.push_back(part.shape.size(axis, part.shape.rank()) * static_cast<int64_t>(size_of(part.dtype)));
      row_bytes += bytes.back();
    }
  }

  // Calls move(number of the part, its offset in the whole, its offset in itself, bytes).
  template <class Move>
  void for_pieces(Move move) const {
    parallel_for(rows, std::max<int64_t>(1, element_grain * 4 / std::max<int64_t>(1, row_bytes)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     int64_t at = row * row_bytes;
                     for (size_t part = 0; part < bytes.size(); ++part) {
                       if (bytes[part] > 0) move(part, at, row * bytes[part], static_cast<size_t>(bytes[part]));
                       at += bytes[part];
                     }
                   }
                 });
  }
};

std::unique_ptr<Kernel> build_concat(const NodeView& node) {
  return make_kernel([joints = Joints(node.outputs[0].shape, node.inputs, node.as<Concat>().dim)](const Args& args) {
    auto* whole = args.out<std::byte>();
    joints.for_pieces([&](size_t part, int64_t at, int64_t own, size_t bytes) {
      std::memcpy(whole + at, args.in<std::byte>(part) + own, bytes);
    });
  });
}

std::unique_ptr<Kernel> build_concat_grad(const NodeView& node) {
  return make_kernel(
      [joints = Joints(node.inputs[0].shape, node.outputs, node.as<ConcatGrad>().dim)](const Args& args) {
        const auto* whole = args.in<std::byte>(0);
        joints.for_pieces([&](size_t part, int64_t at, int64_t own, size_t bytes) {
          if (args.outputs[part]) std::memcpy(args.out<std::byte>(part) + own, whole + at, bytes);
        });
      });
}

}  // namespace

void add_concat(ImplementationTable& table) {
  add_plain<Concat>(table, build_concat);
  add_plain<ConcatGrad>(table, build_concat_grad);
}

}  // namespace symbind::cpu_backend
