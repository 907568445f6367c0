// User-defined operators, with typed parameters and kernels for the CPU and for GPUs. They are defined as built-in ones
// are (graph/define.h) and registered once, before they are used: docs/own_operators.md walks through an example.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "symbind/core/context.h"
#include "symbind/core/error.h"
#include "symbind/graph/define.h"

namespace SYMBIND_API symbind {

// One array of a call: contiguous, in the memory of the device.
struct KernelArray {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::none;
  std::string_view op = {};  // the operator's name, for messages

  template <class T>
  T* as() const {
    require(dtype_of<T>() == dtype, "[", op, "] the kernel reads ", dtype_of<T>(), " from an array of ", dtype,
            ": give the operator a kernel for this type, or restrict its types");
    return static_cast<T*>(data);
  }
};

// One run of an operator.
struct KernelCall {
  std::span<const KernelArray> inputs;   // auxiliary states last
  std::span<const KernelArray> outputs;  // to be assigned; data is null where nothing reads one
  bool is_train = false;
  Context context;
  void* stream = nullptr;   // on a GPU, the cudaStream_t to queue the work on
  void* scratch = nullptr;  // as many bytes as scratch_bytes requested
};

template <class P>
struct KernelOptions {
  // Pairs (input, output) that may be the same memory.
  std::vector<std::pair<int, int>> in_place = {};
  // Called once for each node, with null addresses.
  std::function<size_t(const P& params, const KernelCall& call)> scratch_bytes = nullptr;
  // GPU: does the kernel only queue work on the stream? Then it can be a part of a captured plan. A kernel that
  // waits for the device, allocates or uses another stream is not capturable.
  bool capturable = true;
};

// Registers an operator: from then on it can be used by name on symbols, on arrays and in files, and through
// Builder<P>. Fails if a name or P already belongs to an operator.
template <class P>
void register_operator(const std::string& name, OpDef (*define)(Op<P>)) {
  OpRegistry::add_own(define(Op<P>(name)), typeid(P));
}

namespace detail {
struct OwnKernel {
  std::function<void(const void* params, const KernelCall& call)> run;
  std::function<size_t(const void* params, const KernelCall& call)> scratch_bytes;
  std::vector<std::pair<int, int>> in_place;
  bool capturable = true;
};
void register_kernel(const OpDef& op, DeviceType device, OwnKernel kernel);
}  // namespace detail

// How the operator with parameters P runs on CPUs or on GPUs. Every operator needs a kernel for CPUs; without one for
// GPUs, the arrays are copied to the host and back around it. Fails if the operator already has one for this kind of
// device.
template <class P>
void register_kernel(DeviceType device, std::function<void(const P& params, const KernelCall& call)> kernel,
                     KernelOptions<P> options = {}) {
  detail::OwnKernel own;
  own.run = [kernel = std::move(kernel)](const void* params, const KernelCall& call) {
    kernel(*static_cast<const P*>(params), call);
  };
  if (options.scratch_bytes)
    own.scratch_bytes = [bytes = std::move(options.scratch_bytes)](const void* params, const KernelCall& call) {
      return bytes(*static_cast<const P*>(params), call);
    };
  own.in_place = std::move(options.in_place);
  own.capturable = options.capturable;
  detail::register_kernel(op_of<P>(), device, std::move(own));
}

}  // namespace symbind
