// Tests of whole arrays: the result is 1 until a thread finds an element that fails. All such threads write the same
// value.
#include "symbind/ops/finite.h"

#include <vector>

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/array_blocks.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/finite.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int arrays_per_launch = 180;  // what fits the 4 KB of a launch's arguments
constexpr int loads = 8;                // of 16 bytes that a thread has in flight
constexpr int bytes_per_block = block_size * loads * 16;

struct CheckedArrays {
  ArrayBlocks<arrays_per_launch> blocks;
  const void* data[arrays_per_launch];
  int64_t bytes[arrays_per_launch];
  DType dtype[arrays_per_launch];
};
static_assert(sizeof(CheckedArrays) <= 4000);

// A floating number is finite unless all bits of its exponent are 1: then 1 added to the exponent is a carry into the
// sign. A word of 32 bits has one such field or two; of a float64 only the odd word has one.
class ExponentTest {
 public:
  __device__ explicit ExponentTest(DType dtype) {
    switch (dtype) {
      case DType::float16:
        exponents_ = 0x7c007c00u, one_ = 0x04000400u;
        break;
      case DType::bfloat16:
        exponents_ = 0x7f807f80u, one_ = 0x00800080u;
        break;
      case DType::float64:
        exponents_ = 0x7ff00000u, one_ = 0x00100000u, skips_even_ = true;
        break;
      default:
        exponents_ = 0x7f800000u, one_ = 0x00800000u;
    }
  }
  __device__ void add(uint32_t word) { found_ |= (word & exponents_) + one_; }
  __device__ void add(const uint4& words) {
    add(skips_even_ ? 0 : words.x);
    add(words.y);
    add(skips_even_ ? 0 : words.z);
    add(words.w);
  }
  __device__ bool found() const { return (found_ & 0x80008000u) != 0; }

 private:
  uint32_t exponents_, one_, found_ = 0;
  bool skips_even_ = false;
};

__global__ void __launch_bounds__(block_size) find_infinite(const __grid_constant__ CheckedArrays arrays, float* out) {
  const auto own = arrays.blocks.find(blockIdx.x);
  const DType dtype = arrays.dtype[own.array];
  const int64_t first = int64_t{own.block} * bytes_per_block;
  const auto* const data = static_cast<const unsigned char*>(arrays.data[own.array]) + first;
  const int bytes = static_cast<int>(min(arrays.bytes[own.array] - first, int64_t{bytes_per_block}));
  const int thread = static_cast<int>(threadIdx.x);
  const int packs = reinterpret_cast<uintptr_t>(data) % 16 == 0 ? bytes / 16 : 0;
  ExponentTest test(dtype);
  uint4 words[loads];
#pragma unroll
  for (int k = 0; k < loads; ++k) {
    const int i = thread + k * block_size;
    words[k] = i < packs ? reinterpret_cast<const uint4*>(data)[i] : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < loads; ++k) test.add(words[k]);
  // The others one by one: the upper half of a float64, or the lower half of a word from 16 bits.
  const int size = dtype == DType::float64 ? 8 : dtype == DType::float32 ? 4 : 2;
  for (int i = packs * 16 + thread * size; i < bytes; i += block_size * size) {
    const unsigned char* const element = data + i;
    test.add(size == 2 ? *reinterpret_cast<const uint16_t*>(element)
                       : *reinterpret_cast<const uint32_t*>(element + size - 4));
  }
  if (test.found()) *out = 0;
}

std::unique_ptr<Kernel> build_all_finite(const NodeView& node) {
  struct Input {
    size_t index;
    DType dtype;
    int64_t bytes;
  };
  std::vector<Input> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (const Tensor& input = node.inputs[i]; is_floating(input.dtype) && input.shape.size() > 0)
      inputs.push_back({i, input.dtype, static_cast<int64_t>(input.bytes())});
  return make_step(node, [inputs](const Args& args) {
    queue_fill(stream_of(args), args.outputs[0], DType::float32, 1, 1);
    CheckedArrays arrays{};
    const auto queue = [&] {
      if (arrays.blocks.count() > 0)
        find_infinite<<<arrays.blocks.blocks(), block_size, 0, stream_of(args)>>>(arrays, args.out<float>());
      arrays.blocks = {};
    };
    for (const Input& input : inputs) {
      const int64_t blocks = (input.bytes + bytes_per_block - 1) / bytes_per_block;
      if (!arrays.blocks.has_room(blocks)) queue();
      const int array = arrays.blocks.count();
      arrays.data[array] = args.inputs[input.index];
      arrays.bytes[array] = input.bytes;
      arrays.dtype[array] = input.dtype;
      arrays.blocks.add(blocks);
    }
    queue();
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
