// Kernels that many families share: output 0 is input 0, one number throughout, or a function of the index.
#pragma once

#include <memory>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {

// Copies the bytes of input 0; does nothing if the output is the same memory.
std::unique_ptr<Kernel> build_copy(const NodeView& node);
std::unique_ptr<Kernel> build_fill(const NodeView& node, double value);

// out[i] = number(i)
template <class T, class Number>
std::unique_ptr<Kernel> numbers_kernel(int64_t count, Number number) {
  return make_kernel([=](const Args& args) {
    parallel_for(count, element_grain, [=, out = args.out<T>()](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = convert<T>(number(i));
    });
  });
}

}  // namespace symbind::cpu_backend
