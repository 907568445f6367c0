#include "symbind/backend/cuda/families.h"

namespace symbind::cuda_backend {

ImplementationTable all_implementations() {
  ImplementationTable table;
  add_activation(table);
  add_batch_norm(table);
  add_broadcast(table);
  add_concat(table);
  add_conv(table);
  add_creation(table);
  add_deconv(table);
  add_dot(table);
  add_dropout(table);
  add_elementwise(table);
  add_fully_connected(table);
  add_gather(table);
  add_loss(table);
  add_matrix(table);
  add_move(table);
  add_multi_optimizer(table);
  add_optimizer(table);
  add_pool(table);
  add_random(table);
  add_reduce(table);
  add_scalar(table);
  add_softmax(table);
  add_system(table);
  add_pointwise(table);  // the last: operators that have a kernel of their own need no program
  return table;
}

}  // namespace symbind::cuda_backend
