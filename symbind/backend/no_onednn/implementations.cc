#include "symbind/backend/cpu/onednn.h"

namespace symbind {

void add_onednn(ImplementationTable&) {}

}  // namespace symbind
