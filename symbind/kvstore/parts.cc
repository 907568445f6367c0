#include "symbind/core/parts.h"

#include "symbind/kvstore/transport.h"

namespace symbind {

std::vector<Part> store_parts() {
  const std::string problem = mpi_problem();
  return {{"Open MPI", problem.empty(), problem}};
}

}  // namespace symbind
