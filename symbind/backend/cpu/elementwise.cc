#include "symbind/ops/elementwise.h"

#include <algorithm>
#include <cstring>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/fill.h"
#include "symbind/backend/cpu/map.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/functions.h"
#include "symbind/backend/wide.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

std::unique_ptr<Kernel> build_copy(const NodeView& node) {
  return make_kernel(
      [bytes = node.outputs[0].bytes()](const Args& args) {
        if (args.outputs[0] == args.inputs[0]) return;
        const auto* from = args.in<std::byte>(0);
        auto* to = args.out<std::byte>();
        parallel_for(static_cast<int64_t>(bytes), element_grain * 4, [=](int64_t begin, int64_t end) {
          std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
        });
      },
      {.in_place = {{0, 0}}});
}

std::unique_ptr<Kernel> build_fill(const NodeView& node, double value) {
  const int64_t count = node.outputs[0].shape.size();
  return visit_dtype(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([count, value = convert<T>(value)](const Args& args) {
      T* const out = args.out<T>();
      parallel_for(count, element_grain, [=](int64_t begin, int64_t end) { std::fill(out + begin, out + end, value); });
    });
  });
}

namespace {

// In order, in a wide type, block by block: a block is written when all terms have been read, so any of them may share
// memory with the result.
std::unique_ptr<Kernel> build_add_n(const NodeView& node) {
  const int64_t count = node.outputs[0].shape.size();
  KernelTraits traits;
  for (size_t k = 0; k < node.inputs.size(); ++k) traits.in_place.emplace_back(static_cast<int>(k), 0);
  return visit_dtype(node.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = typename decltype(type)::type;
    using C = functions::Wide<T>;
    return make_kernel(
        [count, terms = node.inputs.size()](const Args& args) {
          constexpr int64_t block = 512;
          for_elements(count, [&](int64_t begin, int64_t end) {
            C sums[block];
            for (int64_t at = begin; at < end; at += block) {
              const int64_t some = std::min(block, end - at);
              for (size_t k = 0; k < terms; ++k) {
                const T* const term = args.in<T>(k) + at;
                for (int64_t i = 0; i < some; ++i)
                  sums[i] = k == 0 ? static_cast<C>(term[i]) : functions::add(sums[i], static_cast<C>(term[i]));
              }
              for (int64_t i = 0; i < some; ++i) args.out<T>()[at + i] = convert<T>(sums[i]);
            }
          });
        },
        traits);
  });
}

}  // namespace

void add_elementwise(ImplementationTable& table) {
  add_plain<Unary<"_copy">>(table, build_copy);
  add_plain<Unary<"BlockGrad">>(table, build_copy);
  add_plain<Unary<"make_loss">>(table, build_copy);
  add_plain<Unary<"zeros_like">>(table, [](const NodeView& node) { return build_fill(node, 0); });
  add_plain<Unary<"ones_like">>(table, [](const NodeView& node) { return build_fill(node, 1); });
  add_plain<AddN>(table, build_add_n);
  add_maps(table, functions::UnaryTable{});
  add_maps(table, functions::BinaryTable{});
  add_maps(table, functions::UnaryGradTable{});
  add_maps(table, functions::BinaryGradTable{});
  add_maps(table, functions::ChoiceTable{});
  add_maps(table, functions::ChoiceGradTable{});
}

}  // namespace symbind::cpu_backend
