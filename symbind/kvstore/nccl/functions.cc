#include "symbind/kvstore/nccl/functions.h"

#include "symbind/core/environment.h"
#include "symbind/core/error.h"
#include "symbind/kvstore/gpu_group.h"

namespace symbind {
namespace nccl {

void check(ncclResult_t result, const char* doing) {
  if (result == ncclSuccess) return;
  const char* const details = GetLastError(nullptr);
  fail("[NCCL] ", doing, ": ", GetErrorString(result), details && *details ? join(" (", details, ")") : "",
       "; NCCL_DEBUG=INFO shows more");
}

std::optional<ncclDataType_t> type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return ncclFloat32;
    case DType::float64:
      return ncclFloat64;
    case DType::float16:
      return ncclFloat16;
    case DType::bfloat16:
      return ncclBfloat16;
    case DType::uint8:
      return ncclUint8;
    case DType::int8:
      return ncclInt8;
    case DType::int32:
      return ncclInt32;
    case DType::int64:
      return ncclInt64;
    default:
      return std::nullopt;
  }
}

}  // namespace nccl

std::string nccl_problem() {
  if (!environment::variable("SYMBIND_NCCL").on()) return "SYMBIND_NCCL=0 turns NCCL off";
  return nccl::library.problem();
}

bool nccl_adds(DType dtype) { return nccl::type_of(dtype).has_value(); }

}  // namespace symbind
