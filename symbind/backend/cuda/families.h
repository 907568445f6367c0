// The families of operators with implementations of their own on a GPU, a file each.
#pragma once

#include "symbind/backend/cuda/device.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {

ImplementationTable all_implementations();

void add_activation(ImplementationTable& table);
void add_batch_norm(ImplementationTable& table);
void add_broadcast(ImplementationTable& table);
void add_concat(ImplementationTable& table);
void add_conv(ImplementationTable& table);
void add_creation(ImplementationTable& table);
void add_deconv(ImplementationTable& table);
void add_dot(ImplementationTable& table);
void add_dropout(ImplementationTable& table);
void add_elementwise(ImplementationTable& table);
void add_fully_connected(ImplementationTable& table);
void add_gather(ImplementationTable& table);
void add_loss(ImplementationTable& table);
void add_matrix(ImplementationTable& table);
void add_move(ImplementationTable& table);
void add_multi_optimizer(ImplementationTable& table);
void add_optimizer(ImplementationTable& table);
void add_pointwise(ImplementationTable& table);
void add_pool(ImplementationTable& table);
void add_random(ImplementationTable& table);
void add_reduce(ImplementationTable& table);
void add_scalar(ImplementationTable& table);
void add_softmax(ImplementationTable& table);
void add_system(ImplementationTable& table);

// Writes a cursor that travels in the launch itself; in random.cu.
void queue_cursor(cudaStream_t stream, RandomCursor* cursor, RandomCursor value);

}  // namespace symbind::cuda_backend
