#include "symbind/backend/onednn/library.h"
#include "symbind/core/error.h"
#include "symbind/core/part_sources.h"

namespace symbind {

Part onednn_part() {
  const dnnl::version_t& version = *dnnl::version();
  return {"oneDNN", true, join(version.major, ".", version.minor, ".", version.patch)};
}

}  // namespace symbind
