// Elements moved from one place to another, whatever they mean: only their size counts.
#pragma once

#include "symbind/backend/cpu/movements.h"

namespace symbind::cpu_backend {

class Mover {
 public:
  Mover(const Movement& movement, DType dtype);

  void take(const void* from, void* dense) const;
  void put(void* to, const void* dense) const;
  void fill(void* to, const void* element) const;

 private:
  Movement movement_;
  size_t element_;
};

}  // namespace symbind::cpu_backend
