#include "symbind/backend/loss_scale.h"

#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build(const NodeView& /*node*/) {
  return make_kernel([](const Args& args) {
    adapt_in_memory(args.in<float>(0), args.state<double>(1), args.out<float>(0), args.out<float>(1));
  });
}

}  // namespace

void add_loss_scale(ImplementationTable& table) { add_plain<AdaptLossScale>(table, build); }

}  // namespace symbind::cpu_backend
