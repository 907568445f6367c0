// Stands in for Open MPI where a test needs calls that take long or fail: MPI_Comm_spawn returns when it is let to, and
// the process it has spawned is lost at once.
#include <condition_variable>
#include <cstring>
#include <mutex>

#include <mpi.h>

namespace {

std::mutex mutex;
std::condition_variable changed;
bool may_return = false;
int failures = 0;

}  // namespace

extern "C" {

// mpi.h declares these as objects of types that it does not define.
char comm_self[8] asm("ompi_mpi_comm_self"),
    errors_return[8] asm("ompi_mpi_errors_return"), byte_type[8] asm("ompi_mpi_byte");

void stand_in_let_spawn_return() {
  const std::lock_guard guard(mutex);
  may_return = true;
  changed.notify_all();
}
int stand_in_failures() {
  const std::lock_guard guard(mutex);
  return failures;
}

int MPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler) { return MPI_SUCCESS; }
int MPI_Info_create(MPI_Info*) { return MPI_SUCCESS; }
int MPI_Info_set(MPI_Info, const char*, const char*) { return MPI_SUCCESS; }
int MPI_Info_free(MPI_Info*) { return MPI_SUCCESS; }
int MPI_Comm_spawn(const char*, char*[], int, MPI_Info, int, MPI_Comm, MPI_Comm*, int[]) {
  std::unique_lock guard(mutex);
  changed.wait(guard, [] { return may_return; });
  return MPI_SUCCESS;
}
int MPI_Send(const void*, int, MPI_Datatype, int, int, MPI_Comm) { return MPI_ERR_OTHER; }
int MPI_Error_string(int, char* text, int* length) {
  std::strcpy(text, "the process is lost");
  *length = static_cast<int>(std::strlen(text));
  const std::lock_guard guard(mutex);
  ++failures;
  return MPI_SUCCESS;
}

}  // extern "C"
