#include "symbind/ops/reset_arrays.h"

#include <cstring>
#include <vector>

#include "symbind/backend/cpu/plain.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

std::unique_ptr<Kernel> build(const NodeView& node) {
  std::vector<size_t> bytes;
  for (const Tensor& input : node.inputs) bytes.push_back(input.bytes());
  return make_kernel([bytes](const Args& args) {
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] > 0) std::memset(args.inputs[i], 0, bytes[i]);
  });
}

}  // namespace

void add_reset_arrays(ImplementationTable& table) { add_plain<ResetArrays>(table, build); }

}  // namespace symbind::cpu_backend
