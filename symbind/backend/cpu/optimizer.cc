// Every operator that applies a rule of backend/update_rules.h to one weight, including those of
// ops/adaptive_optimizer.h, and the one that adds noise.
#include "symbind/ops/optimizer.h"

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/cpu/update.h"
#include "symbind/backend/sampling.h"
#include "symbind/backend/update_rules.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// The noise at a position is that of random_normal.
std::unique_ptr<Kernel> build_sgld(const NodeView& node) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = compute_type<T>;
    const update_rules::Sgld<C> rule(node.as<SgldUpdate>());
    return make_kernel(
        [rule, slot = node.random_slot, count = node.outputs[0].shape.size()](const Args& args) {
          constexpr int64_t per_block = sampling::per_block<C>;
          const uint64_t key = args.random->key, draw = args.random->draw + static_cast<uint64_t>(slot);
          const T *weight = args.in<T>(0), *grad = args.in<T>(1);
          T* const out = args.out<T>();
          parallel_for((count + per_block - 1) / per_block, 2048, [=](int64_t begin, int64_t end) {
            for (int64_t at = begin; at < end; ++at) {
              const PhiloxBlock block = philox(key, draw, static_cast<uint64_t>(at));
              for (int64_t i = at * per_block; i < std::min(count, (at + 1) * per_block); ++i) {
                const C noise = sampling::normal<C>(block, static_cast<int>(i % per_block));
                out[i] = convert<T>(rule(static_cast<C>(weight[i]), static_cast<C>(grad[i]), noise));
              }
            }
          });
        },
        {.in_place = {{0, 0}}});
  });
}

}  // namespace

void add_optimizer(ImplementationTable& table) {
  update_rules::for_each_operator([&]<class P, template <class> class Rule, size_t states>(bool has_master) {
    add_plain<P>(table, [has_master](const NodeView& node) {
      return build_update<states>(
          node, [&]<class C>(std::type_identity<C>) { return Rule<C>(node.as<P>()); },
          has_master ? Master::last_state : Master::none);
    });
  });
  add_plain<SgldUpdate>(table, build_sgld);
}

}  // namespace symbind::cpu_backend
