#include "symbind/core/part_sources.h"
#include "symbind/kvstore/gpu_group.h"
#include "symbind/kvstore/transport.h"

namespace symbind {

std::vector<Part> store_parts() {
  const std::string mpi = mpi_problem(), nccl = nccl_problem();
  return {{"Open MPI", mpi.empty(), mpi}, {"NCCL", nccl.empty(), nccl}};
}

}  // namespace symbind
