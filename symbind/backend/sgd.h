// The arithmetic of sgd_update and sgd_mom_update on single numbers, in MXNet's order, shared by all backends.
#pragma once

namespace symbind::sgd {

// lr times the gradient, scaled and clipped. Without clipping both factors are multiplied first.
template <class C>
struct ScaledGradient {
  C lr, rescale, both, bound;
  constexpr ScaledGradient(double lr_, double rescale_, double bound_)
      : lr(static_cast<C>(lr_)),
        rescale(static_cast<C>(rescale_)),
        both(static_cast<C>(lr_) * static_cast<C>(rescale_)),
        bound(static_cast<C>(bound_)) {}
  constexpr C operator()(C grad) const {
    const C scaled = rescale * grad;
    const C below = scaled > bound ? bound : scaled;  // NaN is preserved
    const C clipped = below < -bound ? -bound : below;
    return bound >= C(0) ? lr * clipped : both * grad;
  }
};

// The new weight of (weight, grad).
template <class C>
struct Step {
  C keep;
  ScaledGradient<C> gradient;
  constexpr Step(double lr, double wd, double rescale_grad, double clip_gradient)
      : keep(C(1) - static_cast<C>(lr) * static_cast<C>(wd)), gradient(lr, rescale_grad, clip_gradient) {}
  constexpr C operator()(C weight, C grad) const { return keep * weight - gradient(grad); }
};

// The new momentum of (momentum, weight, grad), which is added to the weight.
template <class C>
struct MomentumStep {
  C keep, decay;
  ScaledGradient<C> gradient;
  constexpr MomentumStep(double lr, double momentum, double wd, double rescale_grad, double clip_gradient)
      : keep(static_cast<C>(momentum)),
        decay(static_cast<C>(lr) * static_cast<C>(wd)),
        gradient(lr, rescale_grad, clip_gradient) {}
  constexpr C operator()(C momentum, C weight, C grad) const {
    return keep * momentum - decay * weight - gradient(grad);
  }
};

}  // namespace symbind::sgd
