#include "symbind/backend/onednn/library.h"

#include <algorithm>
#include <numeric>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "symbind/backend/cpu/loops.h"
#include "symbind/core/environment.h"

namespace symbind::onednn {

namespace {

// Some virtual machines report AMX without the sizes of its tiles. oneDNN 3 then configures tiles of size zero, and its
// first AMX instruction is an illegal one.
bool reports_amx_without_tiles() {
#if defined(__x86_64__)
  constexpr unsigned features = 7, amx_tile = 1u << 24, tile_information = 0x1d;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(features, 0, &a, &b, &c, &d) || !(d & amx_tile)) return false;
  return !__get_cpuid_count(tile_information, 0, &a, &b, &c, &d) || a == 0;
#else
  return false;
#endif
}

dnnl::engine make_engine() {
  if (environment::text("ONEDNN_MAX_CPU_ISA").value().empty() && reports_amx_without_tiles())
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_fp16);
  return {dnnl::engine::kind::cpu, 0};
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine cpu = make_engine();
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream mine(engine());
  return mine;
}

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return dnnl::memory::data_type::f32;
    case DType::float16:
      return dnnl::memory::data_type::f16;
    case DType::bfloat16:
      return dnnl::memory::data_type::bf16;
    default:
      fail_unknown_dtype(dtype);
  }
}

std::string refuse_arrays(const NodeView& node) {
  for (const auto& tensors : {node.inputs, node.outputs}) {
    for (const Tensor& tensor : tensors) {
      if (tensor.dtype != DType::float32 && tensor.dtype != DType::float16 && tensor.dtype != DType::bfloat16)
        return join("element type ", tensor.dtype);
      if (tensor.shape.size() == 0) return "no elements";
    }
  }
  return "";
}

Desc dense(const Dims& dims, DType dtype, std::span<const int> order) {
  Dims strides(dims.size());
  dnnl::memory::dim step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order[i]);
    strides[axis] = step;
    step *= dims[axis];
  }
  return Desc(dims, type_of(dtype), strides);
}

Desc dense(const Dims& dims, DType dtype) {
  std::vector<int> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  return dense(dims, dtype, order);
}

Dims activation_dims(const Tensor& tensor, bool channels_last) {
  Dims dims(tensor.shape.begin(), tensor.shape.end());
  if (channels_last) std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}

Desc activations(const Tensor& tensor, bool channels_last) {
  const Dims dims = activation_dims(tensor, channels_last);
  if (const int64_t block = block_of(tensor.layout); block > 1) return with_blocks(dims, tensor.dtype, block);
  return channels_last || tensor.layout == Layout::channels_last ? with_channels_last(dims, tensor.dtype)
                                                                 : dense(dims, tensor.dtype);
}

Desc with_channels_last(const Dims& dims, DType dtype) {
  std::vector<int> order{0};
  for (int axis = 2; axis < static_cast<int>(dims.size()); ++axis) order.push_back(axis);
  order.push_back(1);
  return dense(dims, dtype, order);
}

Desc with_blocks(const Dims& dims, DType dtype, int64_t block) {
  using tag = dnnl::memory::format_tag;
  constexpr tag of_eight[] = {tag::aBc8b, tag::aBcd8b, tag::aBcde8b};
  constexpr tag of_sixteen[] = {tag::aBc16b, tag::aBcd16b, tag::aBcde16b};
  return Desc(dims, type_of(dtype), (block == 8 ? of_eight : of_sixteen)[dims.size() - 3]);
}

std::optional<Layout> blocked_layout() {
  switch (cpu_backend::instruction_set()) {
    case cpu_backend::InstructionSet::avx512:
      return Layout::blocked16;
    case cpu_backend::InstructionSet::avx2:
      return Layout::blocked8;
    default:
      return std::nullopt;
  }
}

std::optional<Eltwise> eltwise_of(std::string_view act_type) {
  if (act_type == "relu") return Eltwise{dnnl::algorithm::eltwise_relu};
  if (act_type == "sigmoid") return Eltwise{dnnl::algorithm::eltwise_logistic};
  if (act_type == "tanh") return Eltwise{dnnl::algorithm::eltwise_tanh};
  if (act_type == "softrelu") return Eltwise{dnnl::algorithm::eltwise_soft_relu, 1};
  return std::nullopt;
}

std::string refuse_activation(std::string_view act_type) {
  return eltwise_of(act_type) ? "" : join("activation ", act_type);
}

dnnl::primitive_attr attributes(const std::optional<Eltwise>& activation) {
  dnnl::post_ops after;
  if (activation) after.append_eltwise(activation->algorithm, activation->alpha, 0);
  return attributes(after);
}

dnnl::primitive_attr attributes(const dnnl::post_ops& after) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(after);
  return attr;
}

bool is_reference(const dnnl::primitive_desc_base& descriptor) {
  return std::string_view(descriptor.impl_info_str()).starts_with("ref");
}

bool is_slow_with_post_ops(const dnnl::primitive_desc_base& descriptor) {
  const std::string_view name = descriptor.impl_info_str();
  return name.find("gemm:") != std::string_view::npos || is_reference(descriptor);
}

}  // namespace symbind::onednn
