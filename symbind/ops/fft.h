// Discrete Fourier transforms along the last axis. A complex number is two neighbouring elements, its real and its
// imaginary part. Neither transform is scaled: ifft(fft(x)) is x times the number of elements transformed.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// (…, d) real → (…, 2d)
struct ContribFFT {
  int64_t compute_size = 128;
};
inline constexpr Builder<ContribFFT> contrib_fft;

// (…, 2d) → (…, d), the real parts
struct ContribIFFT {
  int64_t compute_size = 128;
};
inline constexpr Builder<ContribIFFT> contrib_ifft;

}  // namespace symbind
