// The CPU's implementations: oneDNN's where the library is present, half precision via float32, operators that only
// move elements, composed operators, and those of each family of operators (the list is ops/all.h).
#include "symbind/backend/composed.h"
#include "symbind/backend/cpu/as_float.h"
#include "symbind/backend/cpu/move.h"
#include "symbind/backend/cpu/onednn.h"
#include "symbind/core/error.h"
#include "symbind/core/parallel.h"
#include "symbind/passes/own_kernels.h"
#include "symbind/passes/target.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace symbind {
namespace cpu_backend {
#define SYMBIND_FAMILY(family) void add_##family(ImplementationTable& table);
#include "symbind/families/cpu.inc"
#undef SYMBIND_FAMILY
}  // namespace cpu_backend

namespace {

#if defined(__SSE2__)
// Denormal numbers are read and written as zero: arithmetic on them is a hundred times slower.
constexpr uint32_t flush_denormals = 0x8040;
uint32_t float_state() { return _mm_getcsr(); }
void set_float_state(uint32_t state) { _mm_setcsr(state); }
#else
constexpr uint32_t flush_denormals = 0;
uint32_t float_state() { return 0; }
void set_float_state(uint32_t) {}
#endif

class CpuTarget final : public Target {
 public:
  CpuTarget() {
    using namespace cpu_backend;
    add_onednn(table_);
    add_as_float(table_);
    add_move(table_);
    add_composed(table_);
#define SYMBIND_FAMILY(family) add_##family(table_);
#include "symbind/families/cpu.inc"
#undef SYMBIND_FAMILY
  }

  void start_random(Device& device, RandomCursor* cursor, uint64_t draws) override {
    *cursor = device.random().take(draws);
  }

  uint32_t enter() override {
    const uint32_t state = float_state();
    // The pool's other threads run only our code: they are set once.
    thread_local const bool pool_is_set = [] {
      parallel_for(available_threads(), 1, [](int64_t, int64_t) { set_float_state(float_state() | flush_denormals); });
      return true;
    }();
    static_cast<void>(pool_is_set);
    set_float_state(state | flush_denormals);
    return state;
  }
  void leave(uint32_t state) override { set_float_state(state); }

 protected:
  const std::vector<Implementation>& listed(const OpDef& op) override { return table_.of(op); }
  std::vector<Implementation> own(const OpDef& op) override {
    const detail::OwnKernel* const kernel = own_kernel(op, DeviceType::cpu);
    if (!kernel) return {};
    return {{"own", nullptr,
             [kernel](const NodeView& node) { return make_kernel(work_of(*kernel, node), traits_of(*kernel, node)); }}};
  }

 private:
  ImplementationTable table_;
};

}  // namespace

std::unique_ptr<Target> make_cpu_target() { return std::make_unique<CpuTarget>(); }

}  // namespace symbind
