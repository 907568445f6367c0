// Plain loops: the fuse pass creates these operators for GPUs.
#include "symbind/ops/relu_signs.h"

#include "symbind/backend/cpu/half.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/relu_signs.h"
#include "symbind/core/axis_view.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

AxisView view_of(const NodeView& node, const Tensor& array) {
  return view_along(array.shape, array.shape.axis(node.as<ReluSigns>().axis, node.where()));
}

// Calls visit(byte, index in it, index of the element) for all elements.
template <class Visit>
void each_sign(const AxisView& view, Visit visit) {
  parallel_for(view.size() / signs_per_byte, element_grain, [&](int64_t begin, int64_t end) {
    for (int64_t byte = begin; byte < end; ++byte) {
      const int64_t row = byte * signs_per_byte / view.length, channel = byte * signs_per_byte % view.length;
      for (int64_t k = 0; k < signs_per_byte; ++k)
        visit(byte, static_cast<unsigned>(k), view.row_start(row) + (channel + k) * view.inner);
    }
  });
}

template <class T>
std::unique_ptr<Kernel> build_signs(const NodeView& node) {
  return make_kernel([view = view_of(node, node.inputs[0])](const Args& args) {
    const T* const data = args.in<T>(0);
    auto* const signs = args.out<uint8_t>();
    each_sign(view, [=](int64_t byte, unsigned k, int64_t element) {
      const unsigned sign = sign_of(widened(data[element])) << k * bits_per_sign;
      signs[byte] = static_cast<uint8_t>(k == 0 ? sign : signs[byte] | sign);
    });
  });
}

template <class T>
std::unique_ptr<Kernel> build_grad(const NodeView& node) {
  return make_kernel([view = view_of(node, node.inputs[0])](const Args& args) {
    const T* const out_grad = args.in<T>(0);
    const auto* const signs = args.in<uint8_t>(1);
    T* const data_grad = args.out<T>();
    each_sign(view, [=](int64_t byte, unsigned k, int64_t element) {
      using C = compute_type<T>;
      const C result = number_of_sign<C>(signs[byte] >> k * bits_per_sign & sign_mask);
      data_grad[element] = narrowed<T>(functions::ReluGrad{}(widened(out_grad[element]), result));
    });
  });
}

}  // namespace

void add_relu_signs(ImplementationTable& table) {
  add_plain<ReluSigns>(table, [](const NodeView& node) {
    return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) { return build_signs<T>(node); });
  });
  add_plain<ReluSignsGrad>(table, [](const NodeView& node) {
    return visit_floating(node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) { return build_grad<T>(node); });
  });
}

}  // namespace symbind::cpu_backend
