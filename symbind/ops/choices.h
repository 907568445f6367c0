// The words that parameters choose from, as constants that an editor completes and a compiler checks:
// pooling(net, {.kernel = {2, 2}, .pool_type = pool_type::avg}). The plain strings of MXNet work as well and are
// checked when the node is created.
#pragma once

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

using Word = const char*;

namespace act_type {  // Activation
inline constexpr Word relu = "relu", sigmoid = "sigmoid", tanh = "tanh", softrelu = "softrelu", softsign = "softsign";
inline constexpr Word all[] = {relu, sigmoid, softrelu, softsign, tanh};
}  // namespace act_type
namespace leaky_type {  // LeakyReLU's act_type
inline constexpr Word elu = "elu", gelu = "gelu", leaky = "leaky", prelu = "prelu", rrelu = "rrelu", selu = "selu";
inline constexpr Word all[] = {elu, gelu, leaky, prelu, rrelu, selu};
}  // namespace leaky_type
namespace pool_type {  // Pooling
inline constexpr Word avg = "avg", lp = "lp", max = "max", sum = "sum";
inline constexpr Word all[] = {avg, lp, max, sum};
}  // namespace pool_type
namespace pooling_convention {
inline constexpr Word full = "full", same = "same", valid = "valid";
inline constexpr Word all[] = {full, same, valid};
}  // namespace pooling_convention
namespace data_layout {  // the order of axes of convolutions and pooling
inline constexpr Word NCW = "NCW", NCHW = "NCHW", NCDHW = "NCDHW", NWC = "NWC", NHWC = "NHWC", NDHWC = "NDHWC";
inline constexpr Word all[] = {NCW, NCHW, NCDHW, NWC, NHWC, NDHWC};
}  // namespace data_layout
namespace dropout_mode {
inline constexpr Word always = "always", training = "training";
inline constexpr Word all[] = {always, training};
}  // namespace dropout_mode
namespace index_mode {  // take and pick: how an index out of range is handled
inline constexpr Word clip = "clip", raise = "raise", wrap = "wrap";
inline constexpr Word of_take[] = {clip, raise, wrap}, of_pick[] = {clip, wrap};
}  // namespace index_mode
namespace normalization {  // of losses
inline constexpr Word batch = "batch", null = "null", valid = "valid";
inline constexpr Word all[] = {batch, null, valid};
}  // namespace normalization
namespace l2_mode {  // L2Normalization
inline constexpr Word channel = "channel", instance = "instance", spatial = "spatial";
inline constexpr Word all[] = {channel, instance, spatial};
}  // namespace l2_mode
namespace pad_mode {
inline constexpr Word constant = "constant", edge = "edge", reflect = "reflect";
inline constexpr Word all[] = {constant, edge, reflect};
}  // namespace pad_mode
namespace softmax_mode {  // SoftmaxActivation
inline constexpr Word channel = "channel", instance = "instance";
inline constexpr Word all[] = {channel, instance};
}  // namespace softmax_mode
namespace ret_typ {  // topk
inline constexpr Word both = "both", indices = "indices", mask = "mask", value = "value";
inline constexpr Word all[] = {both, indices, mask, value};
}  // namespace ret_typ
namespace transform_type {  // GridGenerator and SpatialTransformer
inline constexpr Word affine = "affine", warp = "warp";
inline constexpr Word of_grid[] = {affine, warp}, of_transformer[] = {affine};
}  // namespace transform_type
namespace sampler_type {
inline constexpr Word bilinear = "bilinear";
inline constexpr Word all[] = {bilinear};
}  // namespace sampler_type
namespace sample_type {  // UpSampling
inline constexpr Word bilinear = "bilinear", nearest = "nearest";
inline constexpr Word all[] = {bilinear, nearest};
}  // namespace sample_type
namespace multi_input_mode {
inline constexpr Word concat = "concat", sum = "sum";
inline constexpr Word all[] = {concat, sum};
}  // namespace multi_input_mode

}  // namespace symbind
