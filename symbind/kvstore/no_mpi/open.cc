#include "symbind/core/error.h"
#include "symbind/kvstore/transport.h"

namespace symbind {

std::string mpi_problem() {
  return "this build has no MPI: install Open MPI (Debian: apt-get install libopenmpi-dev openmpi-bin) and build "
         "Symbind again";
}

std::unique_ptr<Transport> open_mpi() { fail("[kvstore] ", mpi_problem()); }

}  // namespace symbind
