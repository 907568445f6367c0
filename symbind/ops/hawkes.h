// The likelihood of events of several kinds in time whose rates jump at each event of their kind and decay again: a
// marked self-exciting Hawkes process with exponential kernels.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

// Kind k has the rate lda[k] + alpha[k] · beta[k] · s[k] at any time, where s[k] decays as e^(-beta[k] · t) and grows
// by 1 at each event of the kind. Inputs, of a batch of n sequences with up to t events of k kinds: lda (n, k), alpha
// (k), beta (k), state (n, k), the s at time 0; lags (n, t), the time since the previous event; marks (n, t), the
// kinds; valid_length (n), the number of events; max_time (n), the end of the observation. Outputs: the logarithms of
// the likelihoods (n), and the states at the end (n, k).
struct HawkesLL {};
inline constexpr Builder<HawkesLL> contrib_hawkesll;

// ([likelihood_grad], [state_grad], then all inputs) → the gradients of lda and of state, and for each sequence those
// of alpha and beta, (n, k) each
struct HawkesLLGrad {
  bool of_likelihood = true;
  bool of_state = true;
};
inline constexpr Builder<HawkesLLGrad> contrib_hawkesll_grad;

}  // namespace symbind
