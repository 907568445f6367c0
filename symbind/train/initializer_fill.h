// Shared by initializers: error prefixes, and functions that fill an array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/train/initializer.h"

namespace symbind::init {

std::string where(const InitDesc& desc);  // "[initializer of fc1_weight] "

// Every initializer takes one draw, whatever the size of the array, so later draws do not depend on it. The numbers are
// generated as float and converted, so an array of any type gets the same ones up to rounding.
void fill_uniform(const InitDesc& desc, NDArray& array, double scale);
void fill_normal(const InitDesc& desc, NDArray& array, double sigma);
void fill_xavier(const InitDesc& desc, NDArray& array, const XavierOptions& options);
// Orthonormal rows or columns, whichever are fewer, times scale.
void fill_orthogonal(const InitDesc& desc, NDArray& array, double scale, bool normal);
// The weights with which a deconvolution enlarges an image by interpolating between its pixels.
void fill_bilinear(const InitDesc& desc, NDArray& array);
// The bias of a layer that predicts an affine map of the plane: the identity.
void fill_identity_map(const InitDesc& desc, NDArray& array);

}  // namespace symbind::init
