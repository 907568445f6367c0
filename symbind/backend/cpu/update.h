// Kernels that apply an update rule (backend/update_rules.h) to the elements of a weight, its gradient and its states.
// A rule is compiled for float and double; arrays of 16-bit numbers are converted piece by piece, and the float32 copy
// of the weight, where there is such a state, is passed instead of the weight.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "symbind/backend/cpu/loops.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// The ranges of threads start at multiples of this many elements.
inline constexpr int64_t update_block = 64;

template <class Body>
void for_update_blocks(int64_t count, const Body& body) {
  const int64_t blocks = (count + update_block - 1) / update_block;
  parallel_for(blocks, element_grain / update_block, [&](int64_t begin, int64_t end) {
    for_range<InstructionSet::avx2>(begin * update_block, std::min(count, end * update_block), body);
  });
}

// The loop of a rule over arrays of the type it computes in. `out` may be the weight.
struct UpdateLoop {
  DType type;
  size_t states;
  std::function<void(void* out, const void* weight, const void* grad, void* const* states, int64_t count)> run;
};

template <class C, class Rule, size_t... k>
void update_elements(const Rule& rule, C* out, const C* weight, const C* grad,
                     const std::array<C*, sizeof...(k)>& states, int64_t begin, int64_t end,
                     std::index_sequence<k...>) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    std::array<C, sizeof...(k)> now{states[k][i]...};
    out[i] = rule(weight[i], grad[i], now[k]...);
    ((states[k][i] = now[k]), ...);
  }
}

template <size_t count, class C, class Rule>
UpdateLoop update_loop(const Rule& rule) {
  return {dtype_of<C>(), count, [rule](void* out, const void* weight, const void* grad, void* const* given, int64_t n) {
            std::array<C*, count> states;
            for (size_t i = 0; i < count; ++i) states[i] = static_cast<C*>(given[i]);
            for_range<InstructionSet::avx2>(
                0, n,
                [&rule, states, to = static_cast<C*>(out), from = static_cast<const C*>(weight),
                 by = static_cast<const C*>(grad)](int64_t begin, int64_t end) {
                  update_elements(rule, to, from, by, states, begin, end, std::make_index_sequence<count>{});
                });
          }};
}

// The loop for a weight of a type: make_rule(type_identity<C>) returns the rule in the type C it computes in.
template <size_t states, class MakeRule>
UpdateLoop update_loop_for(DType weight, MakeRule make_rule) {
  if (weight == DType::float64) return update_loop<states, double>(make_rule(std::type_identity<double>{}));
  return update_loop<states, float>(make_rule(std::type_identity<float>{}));
}

// One weight among those a kernel updates: the arrays are at inputs[first_input] (weight, grad, states, and the
// weight's float32 copy where `master`), and the result goes to an output.
struct UpdatePart {
  UpdateLoop loop;
  DType dtype;  // of weight and gradient, and of the states where there is no master
  int64_t count;
  size_t first_input, output;
  bool master;
};

// All parts in one pass: their elements are one long row that is divided among the cores.
void run_update(std::span<const UpdatePart> parts, const Args& args);
// Each new weight may be written over the old one.
std::vector<std::pair<int, int>> updated_in_place(std::span<const UpdatePart> parts);
std::unique_ptr<Kernel> build_update(std::vector<UpdatePart> parts);

enum class Master { none, last_state };

// The parts of all weights of a node, one after the other: make_rule(type_identity<C>, i) returns the rule of weight i.
template <size_t states, class MakeRule>
std::vector<UpdatePart> parts_of(std::span<const Tensor> weights, Master master, MakeRule make_rule) {
  const bool has_master = master == Master::last_state;
  const size_t per_weight = 2 + states + (has_master ? 1 : 0);
  std::vector<UpdatePart> parts;
  for (size_t i = 0; i < weights.size(); ++i) {
    const DType dtype = weights[i].dtype;
    auto loop =
        update_loop_for<states>(has_master ? DType::float32 : dtype, [&](auto type) { return make_rule(type, i); });
    parts.push_back({std::move(loop), dtype, weights[i].shape.size(), i * per_weight, i, has_master});
  }
  return parts;
}

// The usual kernel: one weight at input 0.
template <size_t states, class MakeRule>
std::unique_ptr<Kernel> build_update(const NodeView& node, MakeRule make_rule, Master master = Master::none) {
  const Tensor& weight = node.inputs[0];
  return build_update({{master == Master::none ? update_loop_for<states>(weight.dtype, make_rule)
                                               : update_loop_for<states>(DType::float32, make_rule),
                        weight.dtype, weight.shape.size(), 0, 0, master == Master::last_state}});
}

}  // namespace symbind::cpu_backend
