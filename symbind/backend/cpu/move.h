// Moves elements between arrays; only the element size matters, not the type.
#pragma once

#include <memory>

#include "symbind/backend/movements.h"

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

// The kernels of taking_operators() and putting_operators().
std::unique_ptr<Kernel> build_take(const NodeView& node, const Movement& movement);
std::unique_ptr<Kernel> build_put(const NodeView& node, const Movement& movement);

// Those kernels, of the operators of every family.
void add_move(ImplementationTable& table);

}  // namespace symbind::cpu_backend
