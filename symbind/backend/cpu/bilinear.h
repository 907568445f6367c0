// Images read at the points of a grid, by interpolation between four pixels, and the gradients of that. A point that is
// outside of the image reads zeros. C is float or double.
#pragma once

#include "symbind/backend/spatial.h"

namespace symbind::cpu_backend {

// y = x at the points of the grid.
template <class C>
void sample(const spatial::Sampled& size, const C* x, const C* grid, C* y);

// dx is assigned.
template <class C>
void sum_data_grad(const spatial::Sampled& size, const C* dy, const C* grid, C* dx);

// grid_grad is assigned.
template <class C>
void write_grid_grad(const spatial::Sampled& size, const C* dy, const C* x, const C* grid, C* grid_grad);

}  // namespace symbind::cpu_backend
