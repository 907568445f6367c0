// Programs of elementwise operators as one kernel each, compiled when a plan is built; an operator that has no kernel
// in the library is a program of one. The same text is compiled once for each kind of GPU in the process.
#include "symbind/ops/pointwise.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "symbind/backend/cuda/axes.h"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/grid.h"
#include "symbind/backend/cuda/nvrtc_library.h"
#include "symbind/backend/cuda/pointwise_source.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/core/error.h"
#include "symbind/ops/elementwise.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

constexpr size_t most_inputs = 16;

std::string refuse(const NodeView& node, const Pointwise& program) {
  if (node.inputs.size() > most_inputs) return join("more than ", most_inputs, " inputs");
  for (const PointwiseInstruction& instruction : program.instructions)
    if (!has_function(instruction)) return join(instruction.op->name, " is not a function of elements");
  return one_layout(node) ? "" : "arrays of different layouts";
}

// NVRTC opens its builtins by their plain name, and the loader does not search NVRTC's own folder for them. If they are
// missing NVRTC reports it.
void open_nvrtc_builtins() {
  static std::once_flag opened;
  std::call_once(opened, [] {
    int major = 0, minor = 0;
    if (nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return;
    const std::string file = join("libnvrtc-builtins.so.", major);
    SharedLibrary({.title = "NVRTC", .file = file.c_str(), .version = minor, .remedy = ""}).problem();
  });
}

// The machine code of a kernel for one architecture ("sm_90").
std::string compile(const std::string& source, const std::string& architecture, const std::string& where) {
  open_nvrtc_builtins();
  std::vector<const char*> names, texts;
  for (const SourceHeader& header : pointwise_headers()) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  nvrtcProgram program = nullptr;
  require(nvrtcCreateProgram(&program, source.c_str(), "pointwise.cu", static_cast<int>(names.size()), texts.data(),
                             names.data()) == NVRTC_SUCCESS,
          where, " NVRTC has no room for a program");
  const std::string for_architecture = "--gpu-architecture=" + architecture;
  // Products and sums are not contracted, as in the kernels of single operators (cmake/Cuda.cmake): otherwise results
  // would depend on how operators are grouped.
  const char* const options[] = {for_architecture.c_str(), "--std=c++20", "--fmad=false",
                                 "--device-as-default-execution-space"};
  const nvrtcResult result = nvrtcCompileProgram(program, std::size(options), options);
  std::string text;  // the messages or the code
  size_t size = 0;
  if (result != NVRTC_SUCCESS && nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS) {
    text.resize(size);
    nvrtcGetProgramLog(program, text.data());
  } else if (nvrtcGetCUBINSize(program, &size) == NVRTC_SUCCESS) {
    text.resize(size);
    nvrtcGetCUBIN(program, text.data());
  }
  nvrtcDestroyProgram(&program);
  require(result == NVRTC_SUCCESS, where, " NVRTC cannot compile for ", architecture, ": ", nvrtcGetErrorString(result),
          "\n", text);
  return text;
}

// The kernels of a program (pointwise_source.h); not all have the second.
struct Kernels {
  cudaKernel_t elements = nullptr, packs = nullptr;
};

// Kernels are shared by all GPUs of the architecture in the process: they are never unloaded.
cudaLibrary_t library_of(const std::string& source, int device, const std::string& where) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), where);
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), where);
  const std::string architecture = join("sm_", major, minor);

  static std::mutex mutex;
  static auto& all = *new std::unordered_map<std::string, cudaLibrary_t>;
  const std::scoped_lock lock(mutex);
  cudaLibrary_t& library = all[architecture + source];
  if (library) return library;
  const std::string code = compile(source, architecture, where);
  check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), where);
  return library;
}

cudaKernel_t kernel_of(cudaLibrary_t library, const char* name, const std::string& where) {
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, name), where);
  return kernel;
}

std::vector<DType> input_types(const NodeView& node) {
  std::vector<DType> types;
  for (const Tensor& input : node.inputs) types.push_back(input.dtype);
  return types;
}

Kernels kernels_of(const NodeView& node, const Pointwise& program, int device) {
  const DType dtype = node.outputs[0].dtype;
  const std::vector<DType> types = input_types(node);
  const cudaLibrary_t library = library_of(pointwise_source(program, dtype, types), device, node.where());
  return {kernel_of(library, "pointwise", node.where()),
          has_packs(dtype, types) ? kernel_of(library, "pointwise_packs", node.where()) : nullptr};
}

constexpr uintptr_t pack_bytes = 16;

// Are all arrays aligned to packs? Users' arrays may be views, whose alignment is not known before a run.
bool aligned_for_packs(const Args& args, size_t inputs) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(args.outputs[0]);
  for (size_t k = 0; k < inputs; ++k) bits |= reinterpret_cast<uintptr_t>(args.inputs[k]);
  return bits % pack_bytes == 0;
}

std::unique_ptr<Kernel> build(const NodeView& node, const Pointwise& program) {
  CudaDevice& device = CudaDevice::of(node.context);
  const DType dtype = node.outputs[0].dtype;
  const Kernels kernels = kernels_of(node, program, device.id());
  KernelTraits traits;
  for (size_t k = 0; k < node.inputs.size(); ++k)
    if (size_of(node.inputs[k].dtype) == size_of(dtype)) traits.in_place.emplace_back(static_cast<int>(k), 0);
  const auto per_pack = static_cast<int64_t>(pack_bytes / size_of(dtype));
  return make_step(
      node,
      [kernels, per_pack, count = node.outputs[0].shape.size(), inputs = node.inputs.size(), &device,
       where = node.where()](const Args& args) {
        if (count == 0) return;
        void* out = args.outputs[0];
        long long elements = count;
        std::array<void*, most_inputs + 2> arguments;
        for (size_t k = 0; k < inputs; ++k) arguments[k] = const_cast<void**>(&args.inputs[k]);
        arguments[inputs] = &out;
        arguments[inputs + 1] = &elements;
        const bool packs = kernels.packs && aligned_for_packs(args, inputs);
        device.check(cudaLaunchKernel(reinterpret_cast<const void*>(packs ? kernels.packs : kernels.elements),
                                      dim3(blocks_for(packs ? count / per_pack : count)), dim3(block_size),
                                      arguments.data(), 0, stream_of(args)),
                     where);
      },
      traits);
}

// The operator of a node as a program, which lasts as long as the node.
Pointwise alone(const NodeView& node) {
  Pointwise program;
  program.num_args = static_cast<int64_t>(node.inputs.size());
  std::vector<int> operands(node.inputs.size());
  std::iota(operands.begin(), operands.end(), 0);
  append_instructions(node.op, {std::shared_ptr<const void>(), node.params}, operands,
                      static_cast<int>(operands.size()), program.instructions);
  return program;
}

std::string refuse_alone(const NodeView& node) {
  const Tensor& out = node.outputs[0];
  if (node.outputs.size() > 1) return "has several outputs";
  for (const Tensor& input : node.inputs)
    if (!(input.shape == out.shape)) return "arrays of different shapes";
  const Pointwise program = alone(node);
  return program.instructions.empty() ? "nothing is computed" : refuse(node, program);
}

// ---- Sums of many arrays --------------------------------------------------------------------------------------------

std::string refuse_sum(const NodeView& node) { return one_layout(node) ? "" : "arrays of different layouts"; }

// More terms than a program has inputs are added part by part, each to the sum of those before.
std::unique_ptr<Kernel> build_sum(const NodeView& node) {
  if (node.inputs.size() <= most_inputs) return build(node, alone(node));
  std::vector<std::shared_ptr<Kernel>> parts;
  std::vector<size_t> counts;  // of inputs, from the second part on with the sum
  for (size_t added = 0; added < node.inputs.size(); added += counts.back() - (counts.size() > 1 ? 1 : 0)) {
    counts.push_back(std::min(most_inputs, node.inputs.size() - added + (counts.empty() ? 0 : 1)));
    NodeView part = node;
    part.inputs = node.inputs.first(counts.back());  // all are alike
    parts.push_back(build(part, alone(part)));
  }
  KernelTraits traits;
  for (size_t k = 0; k < most_inputs; ++k) traits.in_place.emplace_back(static_cast<int>(k), 0);  // the first part's
  return make_kernel(
      [parts, counts](const Args& args) {
        size_t next = 0;
        for (size_t part = 0; part < parts.size(); ++part) {
          std::array<void*, most_inputs> inputs{};
          size_t own = 0;
          if (part > 0) inputs[own++] = args.outputs[0];
          while (own < counts[part]) inputs[own++] = args.inputs[next++];
          Args some = args;
          some.inputs = inputs.data();
          parts[part]->run(some);
        }
      },
      traits);
}

// ---- Programs with several results ----------------------------------------------------------------------------------

constexpr size_t most_cell_arrays = 32;

std::string refuse_cell(const NodeView& node) {
  const auto& cell = node.as<PointwiseCell>();
  if (node.inputs.size() + node.outputs.size() > most_cell_arrays)
    return join("more than ", most_cell_arrays, " arrays");
  for (const PointwiseInstruction& instruction : cell.instructions) {
    if (!has_function(instruction)) return join(instruction.op->name, " is not a function of elements");
    if (!is_floating(node.outputs[0].dtype)) return "not floating point";
  }
  return "";
}

std::unique_ptr<Kernel> build_cell(const NodeView& node) {
  CudaDevice& device = CudaDevice::of(node.context);
  const auto& cell = node.as<PointwiseCell>();
  const DType dtype = node.outputs[0].dtype;
  const cudaLibrary_t library = library_of(cell_source(cell, dtype), device.id(), node.where());
  KernelTraits traits;
  for (const PointwiseCell::Window& read : cell.reads)
    for (const PointwiseCell::Result& result : cell.results)
      if (cell.is_whole(read) && cell.is_whole(result.window))
        traits.in_place.emplace_back(read.array, result.window.array);
  return make_step(
      node,
      [elements = kernel_of(library, "cell", node.where()), packs = kernel_of(library, "cell_packs", node.where()),
       width = cell_width(cell, dtype), pack_size = size_of(dtype) * static_cast<size_t>(cell_width(cell, dtype)),
       rows = node.outputs[0].shape[0], columns = cell.columns, inputs = node.inputs.size(),
       outputs = node.outputs.size(), &device, where = node.where()](const Args& args) {
        if (rows == 0) return;
        long long row_count = rows;
        std::array<void*, most_cell_arrays + 1> arguments;
        uintptr_t bits = 0;
        const auto pass = [&](size_t k, void* const* array) {
          arguments[k] = const_cast<void**>(array);
          bits |= reinterpret_cast<uintptr_t>(*array);
        };
        for (size_t k = 0; k < inputs; ++k) pass(k, &args.inputs[k]);
        for (size_t k = 0; k < outputs; ++k) pass(inputs + k, &args.outputs[k]);
        arguments[inputs + outputs] = &row_count;
        const bool in_packs = bits % pack_size == 0;
        device.check(cudaLaunchKernel(reinterpret_cast<const void*>(in_packs ? packs : elements),
                                      dim3(blocks_for(rows * columns / (in_packs ? width : 1))), dim3(block_size),
                                      arguments.data(), 0, stream_of(args)),
                     where);
      },
      traits);
}

// ---- Two arrays brought to one shape --------------------------------------------------------------------------------

std::string refuse_broadcast(const NodeView& node) {
  const Tensor& out = node.outputs[0];
  for (const Tensor& input : node.inputs) {
    if (input.dtype != out.dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "needs plain arrays";
  }
  if (out.shape.size() >= int64_t{1} << 31) return "2^31 elements or more";
  return refuse(node, alone(node));
}

BroadcastSteps steps_of(const NodeView& node) {
  const BroadcastAxes axes(node.outputs[0].shape, node.inputs[0].shape, node.inputs[1].shape);
  BroadcastSteps steps{.rank = axes.rank};
  for (int axis = 0; axis < axes.rank; ++axis) {
    steps.extent[axis] = static_cast<unsigned>(axes.extent[axis]);
    steps.step_a[axis] = static_cast<unsigned>(axes.stride_a[axis]);
    steps.step_b[axis] = static_cast<unsigned>(axes.stride_b[axis]);
  }
  return steps;
}

std::unique_ptr<Kernel> build_broadcast(const NodeView& node) {
  const Shape &out = node.outputs[0].shape, &a = node.inputs[0].shape, &b = node.inputs[1].shape;
  const Pointwise program = alone(node);
  if (a == out && b == out) return build(node, program);
  CudaDevice& device = CudaDevice::of(node.context);
  const cudaLibrary_t library =
      library_of(broadcast_source(program, node.outputs[0].dtype, input_types(node)), device.id(), node.where());
  KernelTraits traits;
  if (a == out) traits.in_place.emplace_back(0, 0);
  if (b == out) traits.in_place.emplace_back(1, 0);
  return make_step(
      node,
      [kernel = kernel_of(library, "broadcast", node.where()), steps = steps_of(node), count = out.size(), &device,
       where = node.where()](const Args& args) {
        if (count == 0) return;
        const void *lhs = args.inputs[0], *rhs = args.inputs[1];
        void* result = args.outputs[0];
        long long elements = count;
        BroadcastSteps by_value = steps;
        void* arguments[] = {&lhs, &rhs, &result, &elements, &by_value};
        device.check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks_for(count)), dim3(block_size),
                                      arguments, 0, stream_of(args)),
                     where);
      },
      traits);
}

}  // namespace

void add_pointwise(ImplementationTable& table) {
  table.add<Pointwise>({"nvrtc",
                        [](const NodeView& node) { return refuse(node, node.as<Pointwise>()); },
                        [](const NodeView& node) { return build(node, node.as<Pointwise>()); },
                        {},
                        true,
                        Tier::generated});
  table.add<AddN>({"nvrtc", refuse_sum, build_sum, {}, true, Tier::generated});
  table.add<PointwiseCell>({"nvrtc", refuse_cell, build_cell, {}, true, Tier::generated});
  for (const OpDef* op : OpRegistry::get().all()) {
    if (is_broadcast(*op))
      table.add(*op, {"nvrtc", refuse_broadcast, build_broadcast, {}, true, Tier::generated});
    else if (has_functions(*op))
      table.add(*op, {"nvrtc",
                      refuse_alone,
                      [](const NodeView& node) { return build(node, alone(node)); },
                      {},
                      true,
                      Tier::generated});
  }
}

}  // namespace symbind::cuda_backend
