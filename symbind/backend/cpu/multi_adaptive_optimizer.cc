#include <cstring>

#include "symbind/backend/cpu/lane_sums.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/update.h"
#include "symbind/backend/multi_adaptive.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// ---- AdamW ----------------------------------------------------------------------------------------------------------

// The weights do not change: outputs are copies.
void copy_weights(std::span<const UpdatePart> parts, const Args& args) {
  for (const UpdatePart& part : parts) {
    const void* const from = args.inputs[part.first_input];
    void* const to = args.outputs[part.output];
    if (from != to && part.count > 0) std::memcpy(to, from, static_cast<size_t>(part.count) * size_of(part.dtype));
  }
}

// The gradient's scale is the last input, so the rules are created when the kernel runs.
template <class P>
std::unique_ptr<Kernel> build_adamw(const NodeView& node, Master master) {
  const std::vector<Tensor> weights(node.outputs.begin(), node.outputs.end());
  const auto parts = [=, p = node.as<P>()](float rescale) {
    return parts_of<2>(weights, master, [&]<class C>(std::type_identity<C>, size_t i) {
      update_rules::AdamW<C> rule(update_rules::step_of(p, i));
      rule.scaled.rescale = static_cast<C>(rescale);
      return rule;
    });
  };
  return make_kernel(
      [parts, scale = node.inputs.size() - 1](const Args& args) {
        const float rescale = *args.in<float>(scale);
        if (update_rules::is_usable(rescale))
          run_update(parts(rescale), args);
        else
          copy_weights(parts(1), args);
      },
      {.in_place = updated_in_place(parts(1))});
}

// ---- LAMB -----------------------------------------------------------------------------------------------------------

constexpr int64_t lamb_piece = 4096;  // elements that are summed in one piece

// One weight of type T; states and, where there is one, its master are of type S.
template <class T, class S>
struct LambPart {
  using C = compute_type<S>;
  update_rules::LambDirection<C> direction_rule;
  update_rules::LambRate<C> rate_rule;
  int64_t count;
  const T *weight = nullptr, *grad = nullptr;
  S *mean = nullptr, *var = nullptr, *master = nullptr;
  T* out = nullptr;
  C* direction = nullptr;

  int64_t pieces() const { return (count + lamb_piece - 1) / lamb_piece; }
  C weight_at(int64_t i) const { return master ? static_cast<C>(master[i]) : static_cast<C>(weight[i]); }

  // The directions of a piece, and the sums of squares of its weights and directions.
  void find_directions(int64_t piece, double* squares) const {
    const int64_t begin = piece * lamb_piece, end = std::min(count, begin + lamb_piece);
    for (int64_t i = begin; i < end; ++i) {
      C own_mean = static_cast<C>(mean[i]), own_var = static_cast<C>(var[i]);
      direction[i] = direction_rule(weight_at(i), static_cast<C>(grad[i]), own_mean, own_var);
      mean[i] = static_cast<S>(own_mean);
      var[i] = static_cast<S>(own_var);
    }
    const auto square = [](C value) { return static_cast<double>(value) * static_cast<double>(value); };
    squares[0] = sum_in_lanes(end - begin, [&](int64_t i) { return square(weight_at(begin + i)); });
    squares[1] = sum_in_lanes(end - begin, [&](int64_t i) { return square(direction[begin + i]); });
  }
  void step_along(int64_t piece, C rate) const {
    const int64_t begin = piece * lamb_piece, end = std::min(count, begin + lamb_piece);
    for (int64_t i = begin; i < end; ++i) {
      const C next = weight_at(i) - rate * direction[i];
      if (master) master[i] = static_cast<S>(next);
      out[i] = static_cast<T>(next);
    }
  }
};

template <class T, class S>
void update_lamb(const LambPart<T, S>& part) {
  using C = typename LambPart<T, S>::C;
  constexpr int64_t grain = element_grain / lamb_piece / 4 + 1;
  std::vector<double> squares(static_cast<size_t>(part.pieces()) * 2);
  parallel_for(part.pieces(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece)
      part.find_directions(piece, squares.data() + static_cast<size_t>(piece) * 2);
  });
  double of_weight = 0, of_direction = 0;
  for (size_t i = 0; i < squares.size(); i += 2) of_weight += squares[i], of_direction += squares[i + 1];
  const C rate = part.rate_rule(static_cast<C>(std::sqrt(of_weight)), static_cast<C>(std::sqrt(of_direction)));
  parallel_for(part.pieces(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) part.step_along(piece, rate);
  });
}

template <class P, bool has_master>
std::unique_ptr<Kernel> build_lamb(const NodeView& node) {
  constexpr size_t per_weight = has_master ? 5 : 4;
  std::vector<std::pair<int, int>> in_place;
  int64_t longest = 0;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    in_place.emplace_back(static_cast<int>(i * per_weight), static_cast<int>(i));
    longest = std::max(longest, node.outputs[i].shape.size());
  }
  const std::vector<Tensor> weights(node.outputs.begin(), node.outputs.end());
  return make_kernel(
      [weights, p = node.as<P>()](const Args& args) {
        for (size_t i = 0; i < weights.size(); ++i)
          visit_floating(weights[i].dtype, [&]<class T>(std::type_identity<T>) {
            using S = std::conditional_t<has_master, float, T>;
            using C = compute_type<S>;
            const size_t first = i * per_weight;
            update_lamb(LambPart<T, S>{
                update_rules::LambDirection<C>(update_rules::direction_of(p, i)),
                update_rules::LambRate<C>(update_rules::length_of(p, i)), weights[i].shape.size(), args.in<T>(first),
                args.in<T>(first + 1), args.state<S>(first + 2), args.state<S>(first + 3),
                has_master ? args.state<S>(first + 4) : nullptr, args.out<T>(i), static_cast<C*>(args.scratch)});
          });
      },
      {.in_place = std::move(in_place), .scratch_bytes = static_cast<size_t>(longest) * sizeof(double)});
}

}  // namespace

void add_multi_adaptive_optimizer(ImplementationTable& table) {
  add_plain<AdamWUpdate>(table, [](const NodeView& n) { return build_adamw<AdamWUpdate>(n, Master::none); });
  add_plain<MpAdamWUpdate>(table, [](const NodeView& n) { return build_adamw<MpAdamWUpdate>(n, Master::last_state); });
  add_plain<MultiAdamWUpdate>(table, [](const NodeView& n) { return build_adamw<MultiAdamWUpdate>(n, Master::none); });
  add_plain<MultiMpAdamWUpdate>(
      table, [](const NodeView& n) { return build_adamw<MultiMpAdamWUpdate>(n, Master::last_state); });
  add_plain<MultiLambUpdate>(table, build_lamb<MultiLambUpdate, false>);
  add_plain<MultiMpLambUpdate>(table, build_lamb<MultiMpLambUpdate, true>);
}

}  // namespace symbind::cpu_backend
