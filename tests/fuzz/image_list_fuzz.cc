#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  symbind::fuzz::accepts(symbind::fuzz::read_list, {reinterpret_cast<const char*>(data), size});
  return 0;
}
