// The likelihood of a Hawkes process, for all devices: one sequence, event by event, in double. Each kind of event has
// its state s, the derivatives of s by beta and by the initial state, and the time of its last update; between two
// updates s decays, and the rate is integrated.
#pragma once

#include <cstdint>

#include "symbind/backend/freestanding.h"

namespace symbind::hawkes {

struct Size {
  int64_t batch, kinds, events;
};

template <class T>
struct Inputs {
  const T *lda, *alpha, *beta, *state, *lags;
  const int64_t* marks;
  const T *valid_length, *max_time;
};

// Of a kind: its state, and the derivatives of the likelihood.
struct Kind {
  double state, by_beta, by_initial, seen;
  double likelihood_by_lda, likelihood_by_alpha, likelihood_by_beta, likelihood_by_state;
};

template <class T>
struct Sequence {
  Inputs<T> in;
  Size size;
  int64_t n;
  Kind* kinds;  // of this sequence

  constexpr double lda(int64_t k) const { return in.lda[n * size.kinds + k]; }

  // The state of kind k at `time`, and the contribution of the time until then to the likelihood.
  constexpr double advance(int64_t k, double time) const {
    Kind& kind = kinds[k];
    const double span = time - kind.seen, alpha = in.alpha[k],
                 decay = libm::exp(-static_cast<double>(in.beta[k]) * span);
    const double lost = 1 - decay;
    const double added = -(lda(k) * span + alpha * kind.state * lost);
    kind.likelihood_by_lda -= span;
    kind.likelihood_by_alpha -= kind.state * lost;
    kind.likelihood_by_beta -= alpha * (kind.by_beta * lost + kind.state * span * decay);
    kind.likelihood_by_state -= alpha * kind.by_initial * lost;
    kind.by_beta = (kind.by_beta - span * kind.state) * decay;
    kind.state *= decay;
    kind.by_initial *= decay;
    kind.seen = time;
    return added;
  }

  // An event of kind k now: its contribution.
  constexpr double happen(int64_t k) const {
    Kind& kind = kinds[k];
    const double alpha = in.alpha[k], beta = in.beta[k], rate = lda(k) + alpha * beta * kind.state;
    kind.likelihood_by_lda += 1 / rate;
    kind.likelihood_by_alpha += beta * kind.state / rate;
    kind.likelihood_by_beta += alpha * (kind.state + beta * kind.by_beta) / rate;
    kind.likelihood_by_state += alpha * beta * kind.by_initial / rate;
    kind.state += 1;
    return libm::log(rate);
  }

  // The likelihood of the first `count` events until the end; NaN if a mark is not a valid kind. Leaves the states and
  // derivatives in `kinds`.
  constexpr double likelihood(int64_t count) const {
    for (int64_t k = 0; k < size.kinds; ++k)
      kinds[k] = {static_cast<double>(in.state[n * size.kinds + k]), 0, 1, 0, 0, 0, 0, 0};
    double sum = 0, time = 0;
    for (int64_t i = 0; i < count; ++i) {
      time += in.lags[n * size.events + i];
      const int64_t mark = in.marks[n * size.events + i];
      if (mark < 0 || mark >= size.kinds) return freestanding::quiet_nan<double>();
      sum += advance(mark, time) + happen(mark);
    }
    for (int64_t k = 0; k < size.kinds; ++k) sum += advance(k, in.max_time[n]);
    return sum;
  }
};

}  // namespace symbind::hawkes
