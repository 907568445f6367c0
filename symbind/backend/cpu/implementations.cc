// The CPU's implementation lists: oneDNN's where it is there and accepts a node, then our own for what it computes
// slowly or not at all, and the plain ones, which accept everything.
#include "symbind/backend/cpu/as_float.h"
#include "symbind/backend/cpu/conv_gemm.h"
#include "symbind/backend/cpu/families.h"
#include "symbind/backend/cpu/onednn.h"
#include "symbind/backend/cpu/parallel.h"
#include "symbind/backend/cpu/row_implementations.h"
#include "symbind/core/error.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace symbind {
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
    add_winograd(table_);
    add_l2_rows(table_);
    add_softmax_rows(table_);
    add_norm_rows(table_);
    add_batch_norm_rows(table_);
    add_onednn(table_);
    add_as_float(table_);
    add_activation(table_);
    add_adaptive_optimizer(table_);
    add_batch_norm_lanes(table_);
    add_batch_norm(table_);
    add_batch_norm_again(table_);
    add_broadcast(table_);
    add_concat(table_);
    add_conv_gemm(table_);
    add_conv(table_);
    add_conv_fused(table_);
    add_creation(table_);
    add_cumsum(table_);
    add_custom(table_);
    add_deconv(table_);
    add_diag(table_);
    add_dot(table_);
    add_dropout(table_);
    add_elementwise(table_);
    add_fully_connected(table_);
    add_gather(table_);
    add_indices(table_);
    add_khatri_rao(table_);
    add_leaky_relu(table_);
    add_loss(table_);
    add_math(table_);
    add_matrix(table_);
    add_move(table_);
    add_moments(table_);
    add_multi_optimizer(table_);
    add_normalize(table_);
    add_optimizer(table_);
    add_pad(table_);
    add_pointwise(table_);
    add_pool(table_);
    add_random(table_);
    add_rearrange(table_);
    add_reduce(table_);
    add_roi_pool(table_);
    add_scalar(table_);
    add_sequence(table_);
    add_slice(table_);
    add_softmax(table_);
    add_sort(table_);
    add_sparse_reg(table_);
    add_spatial(table_);
    add_system(table_);
    add_tile(table_);
    add_upsample(table_);
  }

  const std::vector<Implementation>& implementations(const OpDef& op) override {
    const auto& list = table_.of(op);
    require(!list.empty(), "[", op.name, "] has no implementation on a CPU");
    return list;
  }

  void start_random(Device& device, RandomCursor* cursor, uint64_t draws) override {
    *cursor = device.random().take(draws);
  }

  uint32_t enter() override {
    const uint32_t state = float_state();
    // The pool's other threads are ours alone: they are set once and stay so.
    thread_local const bool pool_is_set = [] {
      const int threads = cpu_backend::available_threads();
      cpu_backend::run_ranges(
          threads, threads, [](void*, int64_t, int64_t) { set_float_state(float_state() | flush_denormals); }, nullptr);
      return true;
    }();
    static_cast<void>(pool_is_set);
    set_float_state(state | flush_denormals);
    return state;
  }
  void leave(uint32_t state) override { set_float_state(state); }

 private:
  ImplementationTable table_;
};

}  // namespace

std::unique_ptr<Target> make_cpu_target() { return std::make_unique<CpuTarget>(); }

}  // namespace symbind
