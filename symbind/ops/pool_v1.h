// Pooling as MXNet's first versions defined it: a mean always divides by the whole window, also where the window
// reaches beyond the padding.
#pragma once

#include "symbind/ops/composition.h"
#include "symbind/ops/pool.h"

namespace SYMBIND_API symbind {

struct PoolingV1 {
  Tuple kernel = {};
  std::string pool_type = "max";
  bool global_pool = false;
  std::string pooling_convention = "valid";
  Tuple stride = {};
  Tuple pad = {};
};
inline constexpr Builder<PoolingV1> pooling_v1;

// (out_grad, data, output) → data_grad
struct PoolingV1Grad : PoolingV1 {};
inline constexpr Builder<PoolingV1Grad> pooling_v1_grad;

Symbol network_of(const PoolingV1& params, const ComposedInputs& in);
Symbol network_of(const PoolingV1Grad& params, const ComposedInputs& in);

}  // namespace symbind
