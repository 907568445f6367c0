#include "symbind/backend/cpu/widened.h"

#include <algorithm>

#include "symbind/backend/cpu/convert_array.h"

namespace symbind::cpu_backend {
namespace {

struct Part {
  DType dtype;
  int64_t count;
  bool used;
  int64_t at;  // offset of its converted form in scratch; -1: it already has the right type
};

constexpr int64_t padded(int64_t count) { return (count + 15) / 16 * 16; }

}  // namespace

DType widened_type(const NodeView& node) {
  const auto is_double = [](const Tensor& tensor) { return tensor.dtype == DType::float64; };
  const bool wide = std::any_of(node.inputs.begin(), node.inputs.end(), is_double) ||
                    std::any_of(node.outputs.begin(), node.outputs.end(), is_double);
  return wide ? DType::float64 : DType::float32;
}

template <class C>
std::unique_ptr<Kernel> build_widened(const NodeView& node, WidenedBody<C> body, int64_t spare) {
  const Names names = node.op.all_inputs(node.params);
  const Names& unread = node.op.shape_only;
  std::vector<Part> inputs, outputs;
  int64_t elements = 0;
  const auto add = [&](std::vector<Part>& parts, const Tensor& tensor, bool used) {
    const bool converts = used && tensor.dtype != dtype_of<C>();
    parts.push_back({tensor.dtype, tensor.shape.size(), used, converts ? elements : -1});
    if (converts) elements += padded(tensor.shape.size());
  };
  for (size_t i = 0; i < node.inputs.size(); ++i)
    add(inputs, node.inputs[i], std::find(unread.begin(), unread.end(), names[i]) == unread.end());
  for (const Tensor& output : node.outputs) add(outputs, output, true);
  const int64_t spare_at = elements;
  elements += spare;
  return make_kernel(
      [=](const Args& args) {
        C* const scratch = static_cast<C*>(args.scratch);
        std::vector<const C*> in;
        std::vector<C*> out;
        for (size_t i = 0; i < inputs.size(); ++i) {
          const Part& part = inputs[i];
          if (part.at >= 0) convert_array(scratch + part.at, dtype_of<C>(), args.inputs[i], part.dtype, part.count);
          in.push_back(!part.used ? nullptr : part.at >= 0 ? scratch + part.at : args.in<C>(i));
        }
        for (size_t i = 0; i < outputs.size(); ++i)
          out.push_back(outputs[i].at >= 0 ? scratch + outputs[i].at : args.out<C>(i));
        if (spare > 0) out.push_back(scratch + spare_at);
        body(in.data(), out.data());
        for (size_t i = 0; i < outputs.size(); ++i)
          if (outputs[i].at >= 0 && args.outputs[i])
            convert_array(args.outputs[i], outputs[i].dtype, out[i], dtype_of<C>(), outputs[i].count);
      },
      {.scratch_bytes = static_cast<size_t>(elements) * sizeof(C)});
}

template std::unique_ptr<Kernel> build_widened(const NodeView&, WidenedBody<float>, int64_t);
template std::unique_ptr<Kernel> build_widened(const NodeView&, WidenedBody<double>, int64_t);

}  // namespace symbind::cpu_backend
