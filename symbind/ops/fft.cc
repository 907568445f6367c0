#include "symbind/ops/fft.h"

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

template <class P>
Op<P>& with_fields(Op<P>& op) {
  return op
      .param(&P::compute_size, "compute_size", "rows to transform at a time: accepted for compatibility and ignored",
             at_least(1))
      .infer_type([](const P&, Types& t) { same_floating_type(t); });
}

// The arrays differ in their last axis: one has a real number where the other has a complex one.
void infer_axes(Shapes& s, Inferred<Shape> real, Inferred<Shape> complex) {
  if (complex.rank_known() && complex.rank() > 0) {
    const int64_t twice = complex[complex.rank() - 1];
    require(twice == unknown_dim || twice % 2 == 0, s.where(),
            " complex numbers are pairs, the last axis must be even: ", complex.get());
    real.meet(complex.get().with(complex.rank() - 1, twice == unknown_dim ? unknown_dim : twice / 2));
  }
  if (!real.rank_known()) return;
  require(real.rank() > 0, s.where(), " data must have an axis");
  complex.meet(real.get().with(real.rank() - 1, extent_product(real[real.rank() - 1], 2, s.where())));
}

OpDef define(Op<ContribFFT> op) {
  return with_fields(op)
      .doc(
          "Discrete Fourier transform of real data (…, d) along the last axis, of any length: Σ x · e^(-2πijk/d), (…, "
          "2d). A complex number is two neighbouring elements, its real and its imaginary part.")
      .precision(Precision::full)
      .infer_shape([](const ContribFFT&, Shapes& s) { infer_axes(s, s["data"], s.output()); })
      .gradient([](const ContribFFT& p, Grad& g) {
        g.set("data", contrib_ifft(g.out_grad(), {.compute_size = p.compute_size}));
      });
}

OpDef define(Op<ContribIFFT> op) {
  return with_fields(op)
      .doc(
          "Real part of the inverse discrete Fourier transform of complex data (…, 2d) along the last axis, of any "
          "length: Σ x · e^(2πijk/d), (…, d). It is not divided by d.")
      .precision(Precision::full)
      .infer_shape([](const ContribIFFT&, Shapes& s) { infer_axes(s, s.output(), s["data"]); })
      .gradient([](const ContribIFFT& p, Grad& g) {
        g.set("data", contrib_fft(g.out_grad(), {.compute_size = p.compute_size}));
      });
}

}  // namespace

void register_fft(OpRegistry& registry) {
  add<ContribFFT>(registry, "_contrib_fft", define);
  add<ContribIFFT>(registry, "_contrib_ifft", define);
}

}  // namespace symbind
