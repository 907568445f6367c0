// SoftmaxOutput forward by oneDNN's softmax; its gradient is an ordinary loop, and plain.
#include "symbind/backend/onednn/program.h"
#include "symbind/core/axis_view.h"
#include "symbind/ops/loss.h"
#include "symbind/passes/target.h"

namespace symbind::onednn {
namespace {

void assemble(Program& program, const NodeView& node) {
  const AxisView size = size_of(node.as<SoftmaxOutput>(), node.inputs[0].shape);
  const Dims dims = size.inner == 1 ? Dims{size.outer, size.length} : Dims{size.outer, size.length, size.inner};
  const Desc desc = dense(dims, node.outputs[0].dtype);
  const dnnl::softmax_forward::primitive_desc descriptor(
      engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, desc, desc, 1, attributes());
  program.execute(dnnl::softmax_forward(descriptor), descriptor,
                  {{DNNL_ARG_SRC, program.input(0, desc)}, {DNNL_ARG_DST, program.output(0, desc)}});
  program.in_place = {{0, 0}};
}

int threads_of(const NodeView& node) { return threads_for(node.outputs[0].shape.size(), thread_elements); }

std::string refuse(const NodeView& node) {
  // The label is not read in forward, whatever its type.
  const NodeView data_only{node.op,      node.params,   node.name,        node.inputs.first(1),
                           node.outputs, node.is_train, node.random_slot, node.context};
  if (std::string reason = refuse_arrays(data_only); !reason.empty()) return reason;
  return Program::refuse(node, threads_of(node), [&](Program& program) { assemble(program, node); });
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  return Program::build(node, threads_of(node), [&](Program& program) { assemble(program, node); });
}

}  // namespace

void add_softmax(ImplementationTable& table) {
  table.add<SoftmaxOutput>({"onednn", refuse, build, {}, true, Tier::library});
}

}  // namespace symbind::onednn
