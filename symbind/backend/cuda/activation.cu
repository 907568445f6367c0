#include "symbind/ops/activation.h"

#include "symbind/backend/cuda/activation.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/elementwise.cuh"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

std::string refuse_activation(const NodeView& node) {
  return is_floating(node.outputs[0].dtype) ? refuse_elementwise(node) : "wants floating numbers";
}

}  // namespace

void add_activation(ImplementationTable& table) {
  table.add<Activation>({"cuda", refuse_activation, [](const NodeView& node) {
                           return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                             return with_activation(node.as<Activation>().act_type,
                                                    [&](auto function) { return build_map<1, T>(node, function); });
                           });
                         }});
  table.add<ActivationGrad>({"cuda", refuse_activation, [](const NodeView& node) {
                               return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
                                 return with_activation_grad(node.as<ActivationGrad>().act_type, [&](auto function) {
                                   return build_map<2, T>(node, function);
                                 });
                               });
                             }});
}

}  // namespace symbind::cuda_backend
