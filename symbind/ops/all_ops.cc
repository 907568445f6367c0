// Every operator there is: one line per family.
#include "symbind/ops/activation.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/ops/batch_norm.h"
#include "symbind/ops/batch_norm_again.h"
#include "symbind/ops/broadcast.h"
#include "symbind/ops/concat.h"
#include "symbind/ops/conv.h"
#include "symbind/ops/conv_fused.h"
#include "symbind/ops/creation.h"
#include "symbind/ops/cumsum.h"
#include "symbind/ops/custom.h"
#include "symbind/ops/deconv.h"
#include "symbind/ops/diag.h"
#include "symbind/ops/dot.h"
#include "symbind/ops/dropout.h"
#include "symbind/ops/elementwise.h"
#include "symbind/ops/fully_connected.h"
#include "symbind/ops/gather.h"
#include "symbind/ops/indices.h"
#include "symbind/ops/khatri_rao.h"
#include "symbind/ops/leaky_relu.h"
#include "symbind/ops/loss.h"
#include "symbind/ops/math.h"
#include "symbind/ops/matrix.h"
#include "symbind/ops/moments.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/ops/normalize.h"
#include "symbind/ops/optimizer.h"
#include "symbind/ops/pad.h"
#include "symbind/ops/pointwise.h"
#include "symbind/ops/pool.h"
#include "symbind/ops/random.h"
#include "symbind/ops/rearrange.h"
#include "symbind/ops/reduce.h"
#include "symbind/ops/roi_pool.h"
#include "symbind/ops/scalar.h"
#include "symbind/ops/sequence.h"
#include "symbind/ops/slice.h"
#include "symbind/ops/softmax.h"
#include "symbind/ops/sort.h"
#include "symbind/ops/sparse_reg.h"
#include "symbind/ops/spatial.h"
#include "symbind/ops/system.h"
#include "symbind/ops/tile.h"
#include "symbind/ops/upsample.h"

namespace symbind {

void register_all_ops(OpRegistry& registry) {
  register_activation(registry);
  register_adaptive_optimizer(registry);
  register_batch_norm(registry);
  register_batch_norm_again(registry);
  register_broadcast(registry);
  register_concat(registry);
  register_conv(registry);
  register_conv_fused(registry);
  register_creation(registry);
  register_cumsum(registry);
  register_custom(registry);
  register_deconv(registry);
  register_diag(registry);
  register_dot(registry);
  register_dropout(registry);
  register_elementwise(registry);
  register_fully_connected(registry);
  register_gather(registry);
  register_indices(registry);
  register_khatri_rao(registry);
  register_leaky_relu(registry);
  register_loss(registry);
  register_math(registry);
  register_matrix(registry);
  register_moments(registry);
  register_multi_optimizer(registry);
  register_normalize(registry);
  register_optimizer(registry);
  register_pad(registry);
  register_pointwise(registry);
  register_pool(registry);
  register_random(registry);
  register_rearrange(registry);
  register_reduce(registry);
  register_roi_pool(registry);
  register_scalar(registry);
  register_sequence(registry);
  register_slice(registry);
  register_softmax(registry);
  register_sort(registry);
  register_sparse_reg(registry);
  register_spatial(registry);
  register_system(registry);
  register_tile(registry);
  register_upsample(registry);
}

}  // namespace symbind
