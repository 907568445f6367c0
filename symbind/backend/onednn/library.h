// Interface to oneDNN: its engine, and the mapping of our types, layouts and activations to its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dnnl.hpp>

#include "symbind/passes/target.h"

namespace symbind::onednn {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

const dnnl::engine& engine();  // one for the process
dnnl::stream& stream();        // one for each thread

// Fails on a type oneDNN does not have; refuse_types() comes first.
dnnl::memory::data_type type_of(DType dtype);

// The reason why oneDNN does not support these arrays: an element type, no elements at all. Empty when it can.
std::string refuse_arrays(const NodeView& node);

// A dense array whose axes are in memory in the order given, the last one fastest.
Desc dense(const Dims& dims, DType dtype, std::span<const int> order);
Desc dense(const Dims& dims, DType dtype);  // row-major

// The logical dimensions of an array of activations: (batch, channels, space…). `channels_last`: its shape itself
// names the channels last.
Dims activation_dims(const Tensor& tensor, bool channels_last);
// The description of an array by these dimensions, in its actual layout.
Desc activations(const Tensor& tensor, bool channels_last);
Desc with_channels_last(const Dims& dims, DType dtype);
// As (batch, channels / block, space…, block); the block divides the channels.
Desc with_blocks(const Dims& dims, DType dtype, int64_t block);

// The blocked layout whose blocks fill a vector of this processor; none where it has no wide vectors.
std::optional<Layout> blocked_layout();

// An activation function as oneDNN computes it.
struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0;
};
std::optional<Eltwise> eltwise_of(std::string_view act_type);  // none: oneDNN has no such function
std::string refuse_activation(std::string_view act_type);

// Attributes of every primitive here: scratch comes from the arena.
dnnl::primitive_attr attributes(const std::optional<Eltwise>& activation = std::nullopt);
dnnl::primitive_attr attributes(const dnnl::post_ops& after);

// Is the implementation oneDNN's reference one: correct loops, hundreds of times slower than those it optimises?
// Nodes with no other implementation are refused here, so that one of ours runs.
bool is_reference(const dnnl::primitive_desc_base& descriptor);

// Does the descriptor name an implementation through a general matrix product, or the reference loops? These apply
// post-ops one element at a time, ten times slower than a separate pass.
bool is_slow_with_post_ops(const dnnl::primitive_desc_base& descriptor);

}  // namespace symbind::onednn
