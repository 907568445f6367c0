#include "symbind/core/part_sources.h"

namespace symbind {

Part onednn_part() {
  return {"oneDNN", false, "built without it: install onednn-devel-cpu-gomp from PyPI and build Symbind again"};
}

}  // namespace symbind
