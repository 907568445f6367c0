// Tests of whole arrays: the result is 1 until a thread finds an element that fails. All such threads write the same
// value.
#include "symbind/ops/finite.h"

#include <array>
#include <vector>

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/finite.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int arrays_per_launch = 64;

struct CountedArray {
  AnyInput array;
  int64_t count;
};
struct CountedArrays {
  CountedArray array[arrays_per_launch];
};

// A row of blocks for each array.
__global__ void find_infinite(const __grid_constant__ CountedArrays arrays, float* out) {
  const CountedArray& own = arrays.array[blockIdx.y];
  visit_any(own.array.dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_integral_v<T>) {
      const T* const values = static_cast<const T*>(own.array.data);
      bool found = false;
#pragma unroll 4
      for (int64_t i = first_element(); i < own.count; i += element_step())
        found |= !is_finite(static_cast<double>(load(values[i])));
      if (found) *out = 0;
    }
  });
}

std::unique_ptr<Kernel> build_all_finite(const NodeView& node) {
  std::vector<std::pair<DType, int64_t>> inputs;
  for (const Tensor& input : node.inputs) inputs.emplace_back(input.dtype, input.shape.size());
  return make_step(node, [inputs](const Args& args) {
    queue_fill(stream_of(args), args.outputs[0], DType::float32, 1, 1);
    for (size_t first = 0; first < inputs.size(); first += arrays_per_launch) {
      const size_t now = std::min<size_t>(arrays_per_launch, inputs.size() - first);
      CountedArrays arrays{};
      int64_t longest = 0;
      for (size_t i = 0; i < now; ++i) {
        const auto [dtype, count] = inputs[first + i];
        arrays.array[i] = {{args.inputs[first + i], dtype}, count};
        longest = std::max(longest, count);
      }
      const dim3 grid(std::min(blocks_for(longest, block_size * 4), 512u), static_cast<unsigned>(now));
      find_infinite<<<grid, block_size, 0, stream_of(args)>>>(arrays, args.out<float>());
    }
  });
}

__global__ void find_distant(AnyInput a, AnyInput b, int64_t count, IsClose is_close, uint8_t* out) {
  for (int64_t i = first_element(); i < count; i += element_step())
    if (!is_close(a.at<double>(i), b.at<double>(i))) *out = 0;
}

std::unique_ptr<Kernel> build_allclose(const NodeView& node) {
  const auto& p = node.as<AllClose>();
  return make_step(node, [is_close = IsClose{p.rtol, p.atol, p.equal_nan}, a = node.inputs[0].dtype,
                          b = node.inputs[1].dtype, count = node.inputs[0].shape.size()](const Args& args) {
    queue_fill(stream_of(args), args.outputs[0], DType::uint8, 1, 1);
    if (count == 0) return;
    find_distant<<<blocks_for(count), block_size, 0, stream_of(args)>>>(
        AnyInput{args.inputs[0], a}, AnyInput{args.inputs[1], b}, count, is_close, args.out<uint8_t>());
  });
}

std::string refuse(const NodeView& node) {
  for (const Tensor& input : node.inputs)
    if (input.layout != node.inputs[0].layout) return "arrays of different layouts";
  return "";
}

}  // namespace

void add_finite(ImplementationTable& table) {
  table.add<AllFinite>({"cuda", refuse, build_all_finite});
  table.add<MultiAllFinite>({"cuda", refuse, build_all_finite});
  table.add<AllClose>({"cuda", refuse, build_allclose});
}

}  // namespace symbind::cuda_backend
