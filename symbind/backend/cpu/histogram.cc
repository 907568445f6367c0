#include "symbind/ops/histogram.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/histogram.h"
#include "symbind/backend/visit_types.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// Every range of elements is counted separately; integer sums do not depend on the order.
template <class T>
void count(const T* data, int64_t elements, const T* edges, int64_t bins, int64_t* counts) {
  using C = compute_type<T>;
  std::fill_n(counts, bins, int64_t{0});
  const auto edge = [edges](int64_t i) { return static_cast<C>(edges[i]); };
  parallel_for(elements, element_grain / 4 + bins, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> own(static_cast<size_t>(bins), 0);
    for (int64_t i = begin; i < end; ++i)
      if (const int64_t bin = bin_of(static_cast<C>(data[i]), bins, edge); bin >= 0) ++own[static_cast<size_t>(bin)];
    for (int64_t bin = 0; bin < bins; ++bin) std::atomic_ref(counts[bin]) += own[static_cast<size_t>(bin)];
  });
}

template <class T>
std::unique_ptr<Kernel> build_for(const NodeView& node) {
  const auto& p = node.as<Histogram>();
  const int64_t elements = node.inputs[0].shape.size(), bins = node.outputs[0].shape[0];
  std::vector<T> equal;
  if (!p.range.empty())
    for (int64_t i = 0; i <= bins; ++i) equal.push_back(convert<T>(bin_edge(p.range[0], p.range[1], bins, i)));
  return make_kernel([=](const Args& args) {
    const T* const edges = equal.empty() ? args.in<T>(1) : equal.data();
    if (args.outputs[0]) count(args.in<T>(0), elements, edges, bins, args.out<int64_t>(0));
    if (args.outputs[1]) std::copy_n(edges, bins + 1, args.out<T>(1));
  });
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  return visit_types<float, double, float16, bfloat16, uint8_t, int8_t, int32_t, int64_t>(
      node.inputs[0].dtype, [&]<class T>(std::type_identity<T>) { return build_for<T>(node); });
}

}  // namespace

void add_histogram(ImplementationTable& table) { add_plain<Histogram>(table, build); }

}  // namespace symbind::cpu_backend
