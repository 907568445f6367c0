// The plain implementations of each operator family; implementations.cc calls them all.
#pragma once

#include <memory>

#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

void add_activation(ImplementationTable& table);
void add_adaptive_optimizer(ImplementationTable& table);
void add_batch_norm(ImplementationTable& table);
void add_batch_norm_lanes(ImplementationTable& table);  // before the plain ones
void add_batch_norm_again(ImplementationTable& table);
void add_broadcast(ImplementationTable& table);
void add_concat(ImplementationTable& table);
void add_conv(ImplementationTable& table);
void add_conv_fused(ImplementationTable& table);
void add_creation(ImplementationTable& table);
void add_cumsum(ImplementationTable& table);
void add_custom(ImplementationTable& table);
void add_deconv(ImplementationTable& table);
void add_diag(ImplementationTable& table);
void add_dot(ImplementationTable& table);
void add_dropout(ImplementationTable& table);
void add_elementwise(ImplementationTable& table);
void add_fully_connected(ImplementationTable& table);
void add_gather(ImplementationTable& table);
void add_indices(ImplementationTable& table);
void add_khatri_rao(ImplementationTable& table);
void add_leaky_relu(ImplementationTable& table);
void add_loss(ImplementationTable& table);
void add_math(ImplementationTable& table);
void add_matrix(ImplementationTable& table);
void add_move(ImplementationTable& table);
void add_moments(ImplementationTable& table);
void add_multi_optimizer(ImplementationTable& table);
void add_normalize(ImplementationTable& table);
void add_optimizer(ImplementationTable& table);
void add_pad(ImplementationTable& table);
void add_pointwise(ImplementationTable& table);
void add_pool(ImplementationTable& table);
void add_random(ImplementationTable& table);
void add_rearrange(ImplementationTable& table);
void add_reduce(ImplementationTable& table);
void add_roi_pool(ImplementationTable& table);
void add_scalar(ImplementationTable& table);
void add_sequence(ImplementationTable& table);
void add_slice(ImplementationTable& table);
void add_softmax(ImplementationTable& table);
void add_sort(ImplementationTable& table);
void add_sparse_reg(ImplementationTable& table);
void add_spatial(ImplementationTable& table);
void add_system(ImplementationTable& table);
void add_tile(ImplementationTable& table);
void add_upsample(ImplementationTable& table);
void add_winograd(ImplementationTable& table);  // convolutions; to be called before those it is faster than

// A copy between any two devices: every backend lists it.
std::unique_ptr<Kernel> build_cross_device_copy(const NodeView& node);

}  // namespace symbind::cpu_backend
