#include "symbind/backend/cpu/onednn.h"

// The operator families that oneDNN computes, one file each.
#define SYMBIND_ONEDNN_FILES(do_for) do_for(conv) do_for(matmul) do_for(pool) do_for(softmax)

namespace symbind {
namespace onednn {
#define SYMBIND_DECLARE(file) void add_##file(ImplementationTable& table);
SYMBIND_ONEDNN_FILES(SYMBIND_DECLARE)
#undef SYMBIND_DECLARE
}  // namespace onednn

void add_onednn(ImplementationTable& table) {
#define SYMBIND_ADD(file) onednn::add_##file(table);
  SYMBIND_ONEDNN_FILES(SYMBIND_ADD)
#undef SYMBIND_ADD
}

}  // namespace symbind
