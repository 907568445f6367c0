// The arithmetic of the update operators on single numbers, in MXNet's order, shared by all backends. A rule is called
// with a weight, its gradient and its states, which it changes, and returns the new weight. C is the type it computes
// in. (The steps of plain gradient descent are in backend/sgd.h.)
#pragma once

#include <cmath>

#include "symbind/backend/freestanding.h"
#include "symbind/backend/sgd.h"
#include "symbind/ops/adaptive_optimizer.h"
#include "symbind/ops/multi_optimizer.h"
#include "symbind/ops/optimizer.h"

namespace symbind::update_rules {

// Clipped to [-bound, bound]; a bound below 0 means no clipping, and NaN is preserved.
template <class C>
constexpr C clip(C value, C bound) {
  const C below = value > bound ? bound : value;
  const C clipped = below < -bound ? -bound : below;
  return bound >= C(0) ? clipped : value;
}

template <class C>
constexpr C sign(C value) {
  return static_cast<C>(value > C(0)) - static_cast<C>(value < C(0));
}

// The gradient scaled and clipped.
template <class C>
struct Scaled {
  C rescale, bound;
  Scaled(double rescale_, double bound_) : rescale(static_cast<C>(rescale_)), bound(static_cast<C>(bound_)) {}
  constexpr C operator()(C grad) const { return clip(rescale * grad, bound); }
};

// The same with the weight's decay added before the clipping.
template <class C>
struct Decayed {
  C rescale, bound, wd;
  Decayed(double rescale_, double bound_, double wd_)
      : rescale(static_cast<C>(rescale_)), bound(static_cast<C>(bound_)), wd(static_cast<C>(wd_)) {}
  constexpr C operator()(C weight, C grad) const { return clip(rescale * grad + wd * weight, bound); }
};

// mean · keep + value · (1 - keep)
template <class C>
constexpr C running(C mean, C keep, C value) {
  return keep * mean + (C(1) - keep) * value;
}

// ---- ops/optimizer.h ------------------------------------------------------------------------------------------------

template <class C>
struct Sgd {
  sgd::Step<C> step;
  explicit Sgd(const SgdUpdate& p) : step(p.lr, p.wd, p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad) const { return step(weight, grad); }
};

template <class C>
struct SgdMomentum {
  sgd::MomentumStep<C> step;
  explicit SgdMomentum(const SgdMomUpdate& p) : step(p.lr, p.momentum, p.wd, p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& momentum) const {
    momentum = step(momentum, weight, grad);
    return weight + momentum;
  }
};

template <class C>
struct Nag {
  C lr, keep, wd;
  Scaled<C> scaled;
  explicit Nag(const NagMomUpdate& p)
      : lr(static_cast<C>(p.lr)),
        keep(static_cast<C>(p.momentum)),
        wd(static_cast<C>(p.wd)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  // The momentum uses the weight decay of the new weight: MXNet overwrites the weight before it updates the momentum.
  constexpr C operator()(C weight, C grad, C& momentum) const {
    const C g = scaled(grad), kept = keep * momentum;
    const C next = weight - kept + (keep + C(1)) * (kept - lr * (g + wd * weight));
    momentum = kept - lr * (g + wd * next);
    return next;
  }
};

template <class C>
struct SignSgd {
  C keep, lr;
  explicit SignSgd(const SignsgdUpdate& p) : keep(static_cast<C>(1 - p.lr * p.wd)), lr(static_cast<C>(p.lr)) {}
  constexpr C operator()(C weight, C grad) const { return keep * weight - lr * sign(grad); }
};

template <class C>
struct Signum {
  C lr, keep, wd, keep_weight;
  Scaled<C> scaled;
  explicit Signum(const SignumUpdate& p)
      : lr(static_cast<C>(p.lr)),
        keep(static_cast<C>(p.momentum)),
        wd(static_cast<C>(p.wd)),
        keep_weight(static_cast<C>(1 - p.lr * p.wd_lh)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& momentum) const {
    momentum = keep * momentum - (C(1) - keep) * (wd * weight) - (C(1) - keep) * scaled(grad);
    return keep_weight * weight + lr * sign(momentum);
  }
};

template <class C>
struct Dcasgd {
  C lr, keep, lamda, wd;
  Scaled<C> scaled;
  explicit Dcasgd(const DcasgdUpdate& p)
      : lr(static_cast<C>(p.lr)),
        keep(static_cast<C>(p.momentum)),
        lamda(static_cast<C>(p.lamda)),
        wd(static_cast<C>(p.wd)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& momentum, C& previous) const {
    const C g = scaled(grad);
    momentum = keep * momentum - lr * (g + wd * weight + lamda * g * g * (weight - previous));
    previous = weight;
    return weight + momentum;
  }
};

// `noise` has variance 1.
template <class C>
struct Sgld {
  C half_lr, deviation, wd;
  Scaled<C> scaled;
  explicit Sgld(const SgldUpdate& p)
      : half_lr(static_cast<C>(p.lr / 2)),
        deviation(static_cast<C>(std::sqrt(p.lr))),
        wd(static_cast<C>(p.wd)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C noise) const {
    return weight - half_lr * (scaled(grad) + wd * weight) + deviation * noise;
  }
};

// ---- ops/adaptive_optimizer.h ---------------------------------------------------------------------------------------

template <class C>
struct Adam {
  C lr, beta1, beta2, epsilon;
  Decayed<C> decayed;
  explicit Adam(const AdamUpdate& p)
      : lr(static_cast<C>(p.lr)),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        epsilon(static_cast<C>(p.epsilon)),
        decayed(p.rescale_grad, p.clip_gradient, p.wd) {}
  constexpr C operator()(C weight, C grad, C& mean, C& var) const {
    const C g = decayed(weight, grad);
    mean = running(mean, beta1, g);
    var = running(var, beta2, g * g);
    return weight - lr * mean / (std::sqrt(var) + epsilon);
  }
};

template <class C>
struct AdamW {
  C lr, beta1, beta2, epsilon, wd, eta;
  Scaled<C> scaled;
  explicit AdamW(const AdamWStep& p)
      : lr(static_cast<C>(p.lr)),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        epsilon(static_cast<C>(p.epsilon)),
        wd(static_cast<C>(p.wd)),
        eta(static_cast<C>(p.eta)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& mean, C& var) const {
    const C g = scaled(grad);
    mean = running(mean, beta1, g);
    var = running(var, beta2, g * g);
    return weight - eta * (lr * mean / (std::sqrt(var) + epsilon) + wd * weight);
  }
};

template <class C>
struct Adamax {
  C lr, beta1, beta2;
  Decayed<C> decayed;
  explicit Adamax(const AdamaxUpdate& p)
      : lr(static_cast<C>(p.lr)),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        decayed(p.rescale_grad, p.clip_gradient, p.wd) {}
  constexpr C operator()(C weight, C grad, C& mean, C& largest) const {
    const C g = decayed(weight, grad), size = g < C(0) ? -g : g, before = beta2 * largest;
    mean = running(mean, beta1, g);
    largest = before > size ? before : size;
    return largest == C(0) ? weight : weight - lr * mean / largest;  // 0: no gradient so far
  }
};

template <class C>
struct Nadam {
  C lr, beta1, beta2, epsilon, grad_share, mean_share, square_correction;
  Decayed<C> decayed;
  explicit Nadam(const NadamUpdate& p)
      : lr(static_cast<C>(p.lr)),
        beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        epsilon(static_cast<C>(p.epsilon)),
        grad_share(static_cast<C>(p.grad_share)),
        mean_share(static_cast<C>(p.mean_share)),
        square_correction(static_cast<C>(p.square_correction)),
        decayed(p.rescale_grad, p.clip_gradient, p.wd) {}
  constexpr C operator()(C weight, C grad, C& mean, C& var) const {
    const C g = decayed(weight, grad);
    mean = running(mean, beta1, g);
    var = running(var, beta2, g * g);
    return weight - lr * (grad_share * g + mean_share * mean) / (std::sqrt(var / square_correction) + epsilon);
  }
};

template <class C>
struct Ftml {
  C beta1, beta2, epsilon, scale, square_correction;
  Decayed<C> decayed;
  explicit Ftml(const FtmlUpdate& p)
      : beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        epsilon(static_cast<C>(p.epsilon)),
        scale(static_cast<C>((1 - std::pow(p.beta1, static_cast<double>(p.t))) / p.lr)),
        square_correction(static_cast<C>(1 - std::pow(p.beta2, static_cast<double>(p.t)))),
        decayed(p.rescale_grad, p.clip_grad, p.wd) {}
  constexpr C operator()(C weight, C grad, C& d, C& v, C& z) const {
    const C g = decayed(weight, grad);
    v = running(v, beta2, g * g);
    const C next = scale * (std::sqrt(v / square_correction) + epsilon);
    z = running(z, beta1, g) - (next - beta1 * d) * weight;
    d = next;
    return -z / next;
  }
};

template <class C>
struct Ftrl {
  C lr, lamda1, beta, wd;
  Scaled<C> scaled;
  explicit Ftrl(const FtrlUpdate& p)
      : lr(static_cast<C>(p.lr)),
        lamda1(static_cast<C>(p.lamda1)),
        beta(static_cast<C>(p.beta)),
        wd(static_cast<C>(p.wd)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& z, C& n) const {
    const C g = scaled(grad);
    z += g - (std::sqrt(n + g * g) - std::sqrt(n)) * weight / lr;
    n += g * g;
    const C size = z < C(0) ? -z : z;
    const C next = (sign(z) * lamda1 - z) / ((beta + std::sqrt(n)) / lr + wd);
    return size > lamda1 ? next : C(0);
  }
};

template <class C>
struct Rmsprop {
  C lr, gamma1, epsilon, weight_bound;
  Decayed<C> decayed;
  explicit Rmsprop(const RmspropUpdate& p)
      : lr(static_cast<C>(p.lr)),
        gamma1(static_cast<C>(p.gamma1)),
        epsilon(static_cast<C>(p.epsilon)),
        weight_bound(static_cast<C>(p.clip_weights)),
        decayed(p.rescale_grad, p.clip_gradient, p.wd) {}
  constexpr C operator()(C weight, C grad, C& n) const {
    const C g = decayed(weight, grad);
    n = running(n, gamma1, g * g);
    return clip(weight - lr * (g / std::sqrt(n + epsilon)), weight_bound);
  }
};

template <class C>
struct CenteredRmsprop {
  C lr, gamma1, gamma2, epsilon, weight_bound;
  Decayed<C> decayed;
  explicit CenteredRmsprop(const RmspropalexUpdate& p)
      : lr(static_cast<C>(p.lr)),
        gamma1(static_cast<C>(p.gamma1)),
        gamma2(static_cast<C>(p.gamma2)),
        epsilon(static_cast<C>(p.epsilon)),
        weight_bound(static_cast<C>(p.clip_weights)),
        decayed(p.rescale_grad, p.clip_gradient, p.wd) {}
  constexpr C operator()(C weight, C grad, C& n, C& mean, C& delta) const {
    const C g = decayed(weight, grad);
    n = running(n, gamma1, g * g);
    mean = running(mean, gamma1, g);
    delta = gamma2 * delta - lr * (g / std::sqrt(n - mean * mean + epsilon));
    return clip(weight + delta, weight_bound);
  }
};

template <class C>
struct Adagrad {
  C lr, epsilon, wd;
  Scaled<C> scaled;
  explicit Adagrad(const AdagradUpdate& p)
      : lr(static_cast<C>(p.lr)),
        epsilon(static_cast<C>(p.epsilon)),
        wd(static_cast<C>(p.wd)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& history) const {
    const C g = scaled(grad);
    history += g * g;
    return weight - lr * (g / std::sqrt(history + epsilon) + wd * weight);
  }
};

template <class C>
struct Adadelta {
  C rho, epsilon, wd;
  Scaled<C> scaled;
  explicit Adadelta(const AdadeltaUpdate& p)
      : rho(static_cast<C>(p.rho)),
        epsilon(static_cast<C>(p.epsilon)),
        wd(static_cast<C>(p.wd)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& acc_g, C& acc_delta) const {
    const C g = scaled(grad);
    acc_g = running(acc_g, rho, g * g);
    const C delta = std::sqrt(acc_delta + epsilon) / std::sqrt(acc_g + epsilon) * g;
    acc_delta = running(acc_delta, rho, delta * delta);
    return weight - (delta + wd * weight);
  }
};

// Returns the direction, not a weight.
template <class C>
struct LambDirection {
  C beta1, beta2, epsilon, wd, mean_correction, square_correction;
  Scaled<C> scaled;
  explicit LambDirection(const LambUpdatePhase1& p)
      : beta1(static_cast<C>(p.beta1)),
        beta2(static_cast<C>(p.beta2)),
        epsilon(static_cast<C>(p.epsilon)),
        wd(static_cast<C>(p.wd)),
        mean_correction(correction(p.bias_correction, p.beta1, p.t)),
        square_correction(correction(p.bias_correction, p.beta2, p.t)),
        scaled(p.rescale_grad, p.clip_gradient) {}
  constexpr C operator()(C weight, C grad, C& mean, C& var) const {
    const C g = scaled(grad);
    mean = running(mean, beta1, g);
    var = running(var, beta2, g * g);
    return (mean / mean_correction) / (std::sqrt(var / square_correction) + epsilon) + wd * weight;
  }

 private:
  static C correction(bool wanted, double beta, int64_t t) {
    return wanted ? static_cast<C>(1 - std::pow(beta, static_cast<double>(t))) : C(1);
  }
};

// Calls add.operator()<P, Rule, states>(has_master) for each operator that applies a rule to the elements of one
// weight, its gradient and `states` states; with a master, the last input is a float32 copy of the weight, which the
// rule updates.
template <class Add>
void for_each_operator(Add add) {
  add.template operator()<SgdUpdate, Sgd, 0>(false);
  add.template operator()<SgdMomUpdate, SgdMomentum, 1>(false);
  add.template operator()<MpSgdUpdate, Sgd, 0>(true);
  add.template operator()<MpSgdMomUpdate, SgdMomentum, 1>(true);
  add.template operator()<NagMomUpdate, Nag, 1>(false);
  add.template operator()<MpNagMomUpdate, Nag, 1>(true);
  add.template operator()<SignsgdUpdate, SignSgd, 0>(false);
  add.template operator()<SignumUpdate, Signum, 1>(false);
  add.template operator()<DcasgdUpdate, Dcasgd, 2>(false);
  add.template operator()<AdamUpdate, Adam, 2>(false);
  add.template operator()<AdamWStep, AdamW, 2>(false);
  add.template operator()<AdamaxUpdate, Adamax, 2>(false);
  add.template operator()<NadamUpdate, Nadam, 2>(false);
  add.template operator()<FtmlUpdate, Ftml, 3>(false);
  add.template operator()<FtrlUpdate, Ftrl, 2>(false);
  add.template operator()<RmspropUpdate, Rmsprop, 1>(false);
  add.template operator()<RmspropalexUpdate, CenteredRmsprop, 3>(false);
  add.template operator()<AdagradUpdate, Adagrad, 1>(false);
  add.template operator()<AdadeltaUpdate, Adadelta, 2>(false);
  add.template operator()<LambUpdatePhase1, LambDirection, 2>(false);
}

// The rate of LAMB's second phase from the norms of weight and direction.
template <class C>
struct LambRate {
  C lr, low, high;
  explicit LambRate(const LambUpdatePhase2& p)
      : lr(static_cast<C>(p.lr)), low(static_cast<C>(p.lower_bound)), high(static_cast<C>(p.upper_bound)) {}
  constexpr C operator()(C weight_norm, C direction_norm) const {
    if (low >= C(0) && weight_norm < low) weight_norm = low;
    if (high >= C(0) && weight_norm > high) weight_norm = high;
    return weight_norm == C(0) || direction_norm == C(0) ? lr : lr * weight_norm / direction_norm;
  }
};

// The rate of LARS from the sums of squares of weight and gradient.
struct LarsRate {
  float eta, eps, rescale;
  explicit LarsRate(const MultiLars& p)
      : eta(static_cast<float>(p.eta)), eps(static_cast<float>(p.eps)), rescale(static_cast<float>(p.rescale_grad)) {}
  constexpr float operator()(float lr, float weight_square, float grad_square, float wd) const {
    const float weight = libm::sqrt(weight_square), grad = libm::sqrt(grad_square) * rescale;
    const bool both = weight > 0 && grad_square > 0;
    return both ? lr * eta * weight / (grad + wd * weight + eps) : lr;
  }
};

}  // namespace symbind::update_rules
