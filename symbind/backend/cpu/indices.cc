#include "symbind/ops/indices.h"

#include <algorithm>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build_numbers(std::vector<int64_t> numbers) {
  return make_kernel([numbers = std::move(numbers)](const Args& args) {
    std::copy(numbers.begin(), numbers.end(), args.out<int64_t>());
  });
}

std::unique_ptr<Kernel> build_shape(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  return build_numbers({shape.begin(), shape.end()});
}

std::unique_ptr<Kernel> build_size(const NodeView& node) { return build_numbers({node.inputs[0].shape.size()}); }

// Indices out of range are computed like any other; results beyond 64 bits wrap.
std::unique_ptr<Kernel> build_ravel(const NodeView& node) {
  const Tuple extents = node.as<RavelMultiIndex>().shape.get();
  const int64_t count = node.outputs[0].shape.size();
  return visit_dtype(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      parallel_for(count, element_grain, [=, in = args.in<T>(0), out = args.out<T>()](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          uint64_t index = 0;
          for (size_t axis = 0; axis < extents.size(); ++axis) {
            const auto coordinate = convert<int64_t>(in[static_cast<int64_t>(axis) * count + i]);
            index = index * static_cast<uint64_t>(extents[axis]) + static_cast<uint64_t>(coordinate);
          }
          out[i] = convert<T>(static_cast<int64_t>(index));
        }
      });
    });
  });
}

std::unique_ptr<Kernel> build_unravel(const NodeView& node) {
  const Tuple extents = node.as<UnravelIndex>().shape.get();
  const int64_t count = node.inputs[0].shape.size();
  return visit_dtype(node.inputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      parallel_for(count, element_grain, [=, in = args.in<T>(0), out = args.out<T>()](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          auto index = convert<int64_t>(in[i]);
          for (size_t axis = extents.size() - 1; axis > 0; --axis) {
            out[static_cast<int64_t>(axis) * count + i] = convert<T>(index % extents[axis]);
            index /= extents[axis];
          }
          out[i] = convert<T>(index);
        }
      });
    });
  });
}

}  // namespace

void add_indices(ImplementationTable& table) {
  add_plain<ShapeArray>(table, build_shape);
  add_plain<SizeArray>(table, build_size);
  add_plain<RavelMultiIndex>(table, build_ravel);
  add_plain<UnravelIndex>(table, build_unravel);
}

}  // namespace symbind::cpu_backend
