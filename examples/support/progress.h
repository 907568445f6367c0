// How a program shows its progress within an epoch.
#pragma once

#include "symbind/symbind.h"

namespace examples {

using namespace symbind;

// A line every disp_batches batches; 0: a bar over the batches of an epoch.
inline BatchEndCallback progress(int64_t batch_size, int64_t disp_batches, int64_t batches) {
  if (disp_batches) return Speedometer(batch_size, disp_batches);
  return ProgressBar(batches, 40);
}

}  // namespace examples
