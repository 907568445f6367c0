// The functions of NCCL that are called, looked up in the library at the first call: nothing here links against it.
#pragma once

#include <optional>

#include <nccl.h>

#include "symbind/core/dtype.h"
#include "symbind/core/shared_library.h"

namespace symbind::nccl {

inline constinit SharedLibrary library({.title = "NCCL",
                                        .file = "libnccl.so",
                                        .version = NCCL_MAJOR,
                                        .remedy = "install it (Debian: apt-get install libnccl2)",
                                        .usual_folder = "/usr/local/cuda/lib64",
                                        .home = &environment::text("CUDA_HOME")});

#define SYMBIND_NCCL(name) \
  inline constinit SharedFunction<decltype(&::nccl##name)> name { library, "nccl" #name }
SYMBIND_NCCL(GetErrorString);
SYMBIND_NCCL(GetLastError);
SYMBIND_NCCL(CommInitAll);
SYMBIND_NCCL(GetUniqueId);
SYMBIND_NCCL(CommInitRank);
SYMBIND_NCCL(CommGetAsyncError);
SYMBIND_NCCL(CommAbort);
SYMBIND_NCCL(CommDestroy);
SYMBIND_NCCL(GroupStart);
SYMBIND_NCCL(GroupEnd);
SYMBIND_NCCL(Reduce);
SYMBIND_NCCL(AllReduce);
SYMBIND_NCCL(Broadcast);
#undef SYMBIND_NCCL

// Fails with the operation and NCCL's message.
void check(ncclResult_t result, const char* doing);

// None: NCCL does not add this type.
std::optional<ncclDataType_t> type_of(DType dtype);

inline constexpr size_t most_operations = 2048;  // in one group

// Calls `queue`, whose operations NCCL starts together.
template <class Queue>
void grouped(const char* doing, Queue&& queue) {
  check(GroupStart(), doing);
  try {
    queue();
  } catch (...) {
    GroupEnd();
    throw;
  }
  check(GroupEnd(), doing);
}

}  // namespace symbind::nccl
