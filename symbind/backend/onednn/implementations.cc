#include "symbind/backend/cpu/onednn.h"
#include "symbind/backend/onednn/families.h"

namespace symbind {

void add_onednn(ImplementationTable& table) {
  onednn::add_conv(table);
  onednn::add_pool(table);
  onednn::add_matmul(table);
  onednn::add_softmax(table);
}

}  // namespace symbind
