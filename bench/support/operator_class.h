// The classes of kernels that a table of costs has, by the names of operators.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

// Families whose operators have names of the form Family, _Family_What_is_fused and _backward_Family_what, so that new
// ones need no line here. Empty: the operator is of no such family.
inline std::string class_of_family(std::string_view op) {
  const auto strip = [&](std::string_view prefix) {
    const bool has = op.starts_with(prefix);
    if (has) op.remove_prefix(prefix.size());
    return has;
  };
  const bool is_gradient = strip("_backward_");
  if (!is_gradient && !strip("_contrib_")) strip("_");
  if (strip("Convolution")) {
    if (is_gradient) return op.ends_with("_weight") ? "convolution weight gradient" : "convolution data gradient";
    return op == "_Statistics" ? "convolution forward with statistics" : "convolution forward";
  }
  if (strip("BatchNorm")) {
    if (is_gradient) return "BatchNorm backward";
    return op == "_Given_Sums" ? "BatchNorm forward, given statistics" : "BatchNorm forward";
  }
  if (strip("Pooling")) return is_gradient ? "pooling backward" : "pooling forward";
  if (strip("FullyConnected") || strip("dot") || strip("batch_dot")) return "products";
  if (op.find("_update") != std::string_view::npos) return "update";
  return {};
}

// Operators that are in no class are one of their own.
inline std::string class_of(std::string_view op) {
  static const std::map<std::string, std::vector<std::string_view>> classes = {
      {"elementwise",
       {"_pointwise", "_pointwise_cell", "Activation", "_backward_Activation", "elemwise_add", "add_n", "broadcast_mul",
        "relu", "_Relu_Signs", "_backward_Relu_Signs"}},
      {"loss", {"SoftmaxOutput", "_backward_SoftmaxOutput"}},
      {"copies, reorders and casts",
       {"_reorder", "_copy", "_CrossDeviceCopy", "amp_cast", "amp_multicast", "Cast", "_cast_like", "_convert_arrays"}},
      {"overflow check", {"multi_all_finite", "_adapt_loss_scale"}}};
  for (const auto& [name, members] : classes)
    if (std::ranges::find(members, op) != members.end()) return name;
  const std::string family = class_of_family(op);
  return family.empty() ? std::string(op) : family;
}

}  // namespace bench
