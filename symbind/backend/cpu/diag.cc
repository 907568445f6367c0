#include "symbind/ops/diag.h"

#include <algorithm>

#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"

namespace symbind::cpu_backend {
namespace {

int64_t place_of(const Diagonals& diagonals, int64_t element) {
  int64_t place = diagonals.start;
  for (size_t axis = diagonals.extents.size(); axis-- > 0;) {
    place += element % diagonals.extents[axis] * diagonals.steps[axis];
    element /= diagonals.extents[axis];
  }
  return place;
}

std::unique_ptr<Kernel> build_take(const NodeView& node, const Diagonals& diagonals) {
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel([diagonals, count = node.outputs[0].shape.size()](const Args& args) {
      parallel_for(count, element_grain / 4, [&, in = args.in<T>(0), out = args.out<T>()](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = in[place_of(diagonals, i)];
      });
    });
  });
}

std::unique_ptr<Kernel> build_put(const NodeView& node, const Diagonals& diagonals) {
  const int64_t count = node.inputs[0].shape.size(), size = node.outputs[0].shape.size();
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      const T* const in = args.in<T>(0);
      T* const out = args.out<T>();
      std::fill(out, out + size, T(0));
      for (int64_t i = 0; i < count; ++i) out[place_of(diagonals, i)] = in[i];
    });
  });
}

std::unique_ptr<Kernel> build_forward(const NodeView& node) {
  const auto& p = node.as<Diag>();
  const Shape &data = node.inputs[0].shape, &result = node.outputs[0].shape;
  if (data.rank() == 1) return build_put(node, diagonals_of({.k = p.k}, result, node.where()));
  return build_take(node, diagonals_of(p, data, node.where()));
}

std::unique_ptr<Kernel> build_backward(const NodeView& node) {
  const auto& p = node.as<DiagGrad>();
  const Shape &dy = node.inputs[0].shape, &data = node.outputs[0].shape;
  if (data.rank() == 1) return build_take(node, diagonals_of({.k = p.k}, dy, node.where()));
  return build_put(node, diagonals_of(p, data, node.where()));
}

}  // namespace

void add_diag(ImplementationTable& table) {
  add_plain<Diag>(table, build_forward);
  add_plain<DiagGrad>(table, build_backward);
}

}  // namespace symbind::cpu_backend
