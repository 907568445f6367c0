#include "symbind/core/parts.h"

#include "symbind/backend/onednn/library.h"
#include "symbind/core/error.h"

namespace symbind {

Part onednn_part() {
  const dnnl::version_t& version = *dnnl::version();
  return {"oneDNN", true, join(version.major, ".", version.minor, ".", version.patch)};
}

}  // namespace symbind
