// Many arrays converted in one launch: their addresses are part of its arguments, and a row of blocks converts each.
#include "symbind/ops/convert_arrays.h"

#include <vector>

#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/kernels.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr int arrays_per_launch = 120;  // what fits the 4 KB of a launch's arguments
constexpr unsigned most_blocks_per_array = 64;
constexpr int width = 4;  // elements that a thread converts together

struct Part {
  const void* in;
  void* out;
  int64_t count;
  DType from, to;
};
struct Parts {
  Part part[arrays_per_launch];
};
static_assert(sizeof(Parts) <= 4000);

template <class To, class From>
__device__ void convert_part(const Part& part, const float* scale) {
  using C = std::conditional_t<std::is_same_v<To, double> || std::is_same_v<From, double>, double, float>;
  const From* const in = static_cast<const From*>(part.in);
  To* const out = static_cast<To*>(part.out);
  const C factor = scale ? static_cast<C>(*scale) : C(1);
  const auto converted = [&](const From& value) {
    return store<To>(static_cast<compute_type<To>>(static_cast<C>(load(value)) * factor));
  };
  const bool aligned = reinterpret_cast<uintptr_t>(in) % (sizeof(From) * width) == 0 &&
                       reinterpret_cast<uintptr_t>(out) % (sizeof(To) * width) == 0;
  const int64_t packs = aligned ? part.count / width : 0;
  for (int64_t i = first_element(); i < packs; i += element_step()) {
    const auto values = reinterpret_cast<const Pack<From, width>*>(in)[i];
    Pack<To, width> results;
#pragma unroll
    for (int k = 0; k < width; ++k) results.element[k] = converted(values.element[k]);
    reinterpret_cast<Pack<To, width>*>(out)[i] = results;
  }
  for (int64_t i = packs * width + first_element(); i < part.count; i += element_step()) out[i] = converted(in[i]);
}

template <class Visit>
__device__ void visit_device_floating(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::float32:
      return visit(float{});
    case DType::float64:
      return visit(double{});
    case DType::float16:
      return visit(float16{});
    default:
      return visit(bfloat16{});
  }
}

__global__ void convert_parts(const __grid_constant__ Parts parts, const float* scale) {
  const Part& part = parts.part[blockIdx.y];
  visit_device_floating(part.from, [&](auto from) {
    visit_device_floating(part.to, [&](auto to) { convert_part<decltype(to), decltype(from)>(part, scale); });
  });
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  std::vector<Part> parts;
  std::vector<std::pair<int, int>> in_place;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const DType from = node.inputs[i].dtype, to = node.outputs[i].dtype;
    parts.push_back({nullptr, nullptr, node.outputs[i].shape.size(), from, to});
    if (from == to) in_place.emplace_back(static_cast<int>(i), static_cast<int>(i));
  }
  return make_step(node,
                   [parts, scaled = node.as<ConvertArrays>().scaled](const Args& args) {
                     const float* const scale = scaled ? args.in<float>(parts.size()) : nullptr;
                     for (size_t first = 0; first < parts.size(); first += arrays_per_launch) {
                       const size_t now = std::min<size_t>(arrays_per_launch, parts.size() - first);
                       Parts of_launch{};
                       int64_t longest = 0;
                       for (size_t i = 0; i < now; ++i) {
                         Part part = parts[first + i];
                         part.in = args.inputs[first + i];
                         part.out = args.outputs[first + i];
                         if (!part.out) part.count = 0;  // nobody reads it
                         longest = std::max(longest, part.count);
                         of_launch.part[i] = part;
                       }
                       if (longest == 0) continue;
                       const dim3 grid(std::min(blocks_for(longest, block_size * width), most_blocks_per_array),
                                       static_cast<unsigned>(now));
                       convert_parts<<<grid, block_size, 0, stream_of(args)>>>(of_launch, scale);
                     }
                   },
                   {.in_place = std::move(in_place)});
}

std::string refuse(const NodeView& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.inputs[i].layout != node.outputs[i].layout) return "arrays of different layouts";
    if (!is_floating(node.inputs[i].dtype)) return "needs floating types";
  }
  return "";
}

}  // namespace

void add_convert_arrays(ImplementationTable& table) {
  table.add<ConvertArrays>({"cuda", refuse, build, nullptr, false, Tier::specialised});
}

}  // namespace symbind::cuda_backend
