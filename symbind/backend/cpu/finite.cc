#include "symbind/ops/finite.h"

#include <atomic>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/finite.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Does it hold for every index below count? Stops at the first failure.
template <class Holds>
bool holds_for_all(int64_t count, const Holds& holds) {
  std::atomic<bool> all = true;
  parallel_for(count, element_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && all.load(std::memory_order_relaxed); ++i)
      if (!holds(i)) all.store(false, std::memory_order_relaxed);
  });
  return all;
}

bool is_all_finite(const void* data, DType dtype, int64_t count) {
  return visit_dtype(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>) return true;
    const T* const values = static_cast<const T*>(data);
    return holds_for_all(count, [=](int64_t i) { return is_finite(convert<double>(values[i])); });
  });
}

std::unique_ptr<Kernel> build_all_finite(const NodeView& node) {
  std::vector<std::pair<DType, int64_t>> inputs;
  for (const auto& input : node.inputs) inputs.emplace_back(input.dtype, input.shape.size());
  return make_kernel([inputs](const Args& args) {
    bool finite = true;
    for (size_t i = 0; i < inputs.size() && finite; ++i)
      finite = is_all_finite(args.inputs[i], inputs[i].first, inputs[i].second);
    *args.out<float>() = finite ? 1.0F : 0.0F;
  });
}

std::unique_ptr<Kernel> build_allclose(const NodeView& node) {
  const DType a_type = node.inputs[0].dtype, b_type = node.inputs[1].dtype;
  const auto& p = node.as<AllClose>();
  const IsClose is_close{p.rtol, p.atol, p.equal_nan};
  return make_kernel([=, count = node.inputs[0].shape.size()](const Args& args) {
    const bool close = visit_dtype(a_type, [&](auto first) {
      using A = typename decltype(first)::type;
      return visit_dtype(b_type, [&](auto second) {
        using B = typename decltype(second)::type;
        const A* const a = args.in<A>(0);
        const B* const b = args.in<B>(1);
        return holds_for_all(count, [=](int64_t i) { return is_close(convert<double>(a[i]), convert<double>(b[i])); });
      });
    });
    *args.out<uint8_t>() = close ? 1 : 0;
  });
}

}  // namespace

void add_finite(ImplementationTable& table) {
  add_plain<AllFinite>(table, build_all_finite);
  add_plain<MultiAllFinite>(table, build_all_finite);
  add_plain<AllClose>(table, build_allclose);
}

}  // namespace symbind::cpu_backend
