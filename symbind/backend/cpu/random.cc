#include "symbind/ops/random.h"

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/sampling.h"

namespace symbind::cpu_backend {
namespace {

struct UniformNumbers {
  template <class C>
  static C draw(const PhiloxBlock& block, int index, C low, C high) {
    return low + sampling::uniform<C>(block, index) * (high - low);
  }
};
struct NormalNumbers {
  template <class C>
  static C draw(const PhiloxBlock& block, int index, C mean, C deviation) {
    return mean + sampling::normal<C>(block, index) * deviation;
  }
};

// out[i] = a number of the distribution that parameters(i) describes by two numbers.
template <class Numbers, class T, class Parameters>
void draw(const Args& args, int slot, int64_t count, T* out, Parameters parameters) {
  using C = compute_type<T>;
  constexpr int64_t per_block = sampling::per_block<C>;
  const uint64_t key = args.random->key, draw = args.random->draw + static_cast<uint64_t>(slot);
  parallel_for((count + per_block - 1) / per_block, 2048, [=](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const PhiloxBlock block = philox(key, draw, static_cast<uint64_t>(at));
      for (int64_t i = at * per_block; i < std::min(count, (at + 1) * per_block); ++i) {
        const auto [first, second] = parameters(i);
        out[i] = convert<T>(Numbers::draw(block, static_cast<int>(i % per_block), first, second));
      }
    }
  });
}

template <class Numbers>
std::unique_ptr<Kernel> build_random(const NodeView& node, double first, double second) {
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = compute_type<T>;
    return make_kernel([=, slot = node.random_slot, count = node.outputs[0].shape.size()](const Args& args) {
      const std::pair<C, C> both(static_cast<C>(first), static_cast<C>(second));
      draw<Numbers, T>(args, slot, count, args.out<T>(), [both](int64_t) { return both; });
    });
  });
}

template <class Numbers>
std::unique_ptr<Kernel> build_sample(const NodeView& node) {
  const int64_t count = node.outputs[0].shape.size(), distributions = node.inputs[0].shape.size();
  const int64_t each = distributions == 0 ? 1 : std::max<int64_t>(1, count / distributions);
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return visit_dtype(node.inputs[0].dtype, [&](auto input_type) -> std::unique_ptr<Kernel> {
      using In = typename decltype(input_type)::type;
      using C = compute_type<T>;
      return make_kernel([=, slot = node.random_slot](const Args& args) {
        const In *first = args.in<In>(0), *second = args.in<In>(1);
        draw<Numbers, T>(args, slot, count, args.out<T>(), [=](int64_t i) {
          return std::pair<C, C>(convert<C>(first[i / each]), convert<C>(second[i / each]));
        });
      });
    });
  });
}

}  // namespace

void add_random(ImplementationTable& table) {
  add_plain<RandomUniform>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomUniform>();
    return build_random<UniformNumbers>(node, p.low, p.high);
  });
  add_plain<RandomNormal>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomNormal>();
    return build_random<NormalNumbers>(node, p.loc, p.scale);
  });
  add_plain<SampleUniform>(table, build_sample<UniformNumbers>);
  add_plain<SampleNormal>(table, build_sample<NormalNumbers>);
}

}  // namespace symbind::cpu_backend
