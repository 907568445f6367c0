// The functions of MPI that the transport calls. Open MPI's handles of communicators and types are addresses of objects
// in the library, so they are looked up like functions: nothing here links against MPI.
#pragma once

#include <mpi.h>

#include "symbind/core/shared_library.h"

namespace symbind::mpi {

// Open MPI's own plugins expect to find its symbols.
inline constinit SharedLibrary library({.title = "Open MPI",
                                        .file = "libmpi.so",
                                        .version = 40,
                                        .remedy = "install it (Debian: apt-get install openmpi-bin)",
                                        .global = true});

#define SYMBIND_MPI(name) \
  inline constinit SharedFunction<decltype(&::MPI_##name)> name { library, "MPI_" #name }
SYMBIND_MPI(Initialized);
SYMBIND_MPI(Finalized);
SYMBIND_MPI(Init_thread);
SYMBIND_MPI(Query_thread);
SYMBIND_MPI(Finalize);
SYMBIND_MPI(Comm_dup);
SYMBIND_MPI(Comm_set_errhandler);
SYMBIND_MPI(Comm_rank);
SYMBIND_MPI(Comm_size);
SYMBIND_MPI(Get_processor_name);
SYMBIND_MPI(Error_string);
SYMBIND_MPI(Allgather);
SYMBIND_MPI(Isend);
SYMBIND_MPI(Irecv);
SYMBIND_MPI(Improbe);
SYMBIND_MPI(Mrecv);
SYMBIND_MPI(Get_count);
SYMBIND_MPI(Testsome);
SYMBIND_MPI(Comm_group);
SYMBIND_MPI(Group_size);
SYMBIND_MPI(Group_translate_ranks);
SYMBIND_MPI(Group_free);
SYMBIND_MPI(Bcast);
SYMBIND_MPI(Send);
SYMBIND_MPI(Recv);
SYMBIND_MPI(Comm_get_parent);
SYMBIND_MPI(Comm_spawn);
SYMBIND_MPI(Comm_accept);
SYMBIND_MPI(Comm_connect);
SYMBIND_MPI(Comm_disconnect);
SYMBIND_MPI(Open_port);
SYMBIND_MPI(Close_port);
SYMBIND_MPI(Intercomm_merge);
SYMBIND_MPI(Info_create);
SYMBIND_MPI(Info_set);
SYMBIND_MPI(Info_free);
#undef SYMBIND_MPI

// Fault tolerance, which Open MPI has from version 5 on. The headers of version 4, with which one build runs with both,
// do not declare it.
inline constinit SharedFunction<int (*)(MPI_Comm)> Comm_revoke{library, "MPIX_Comm_revoke"};
inline constinit SharedFunction<int (*)(MPI_Comm, MPI_Comm*)> Comm_shrink{library, "MPIX_Comm_shrink"};
inline constinit SharedFunction<int (*)(MPI_Comm, int*)> Comm_agree{library, "MPIX_Comm_agree"};
inline constinit SharedFunction<int (*)(MPI_Comm)> Comm_failure_ack{library, "MPIX_Comm_failure_ack"};
inline constinit SharedFunction<int (*)(MPI_Comm, MPI_Group*)> Comm_failure_get_acked{library,
                                                                                      "MPIX_Comm_failure_get_acked"};
inline constexpr int error_process_failed = 75, error_process_failed_pending = 76, error_revoked = 77;

inline MPI_Comm world() { return static_cast<MPI_Comm>(library.address("ompi_mpi_comm_world")); }
inline MPI_Comm self() { return static_cast<MPI_Comm>(library.address("ompi_mpi_comm_self")); }
inline MPI_Comm no_comm() { return static_cast<MPI_Comm>(library.address("ompi_mpi_comm_null")); }
inline MPI_Info no_info() { return static_cast<MPI_Info>(library.address("ompi_mpi_info_null")); }
inline MPI_Datatype byte() { return static_cast<MPI_Datatype>(library.address("ompi_mpi_byte")); }
inline MPI_Errhandler errors_return() { return static_cast<MPI_Errhandler>(library.address("ompi_mpi_errors_return")); }

}  // namespace symbind::mpi
