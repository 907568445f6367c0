// Steps of stochastic gradient descent and its variants as operators. The output is the new weight, usually written to
// the array of the old one; optimizer state (momentum, the float32 copy of a 16-bit weight) is an auxiliary state.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct SgdUpdate {
  Required<double> lr = {};
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;  // below 0: no clipping
  bool lazy_update = true;
};
inline constexpr Builder<SgdUpdate> sgd_update;

struct SgdMomUpdate {
  Required<double> lr = {};
  double momentum = 0;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  bool lazy_update = true;
};
inline constexpr Builder<SgdMomUpdate> sgd_mom_update;

// The same for 16-bit weights, whose float32 copy is the last state.
struct MpSgdUpdate : SgdUpdate {};
struct MpSgdMomUpdate : SgdMomUpdate {};
inline constexpr Builder<MpSgdUpdate> mp_sgd_update;
inline constexpr Builder<MpSgdMomUpdate> mp_sgd_mom_update;

// Nesterov's momentum.
struct NagMomUpdate {
  Required<double> lr = {};
  double momentum = 0;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
struct MpNagMomUpdate : NagMomUpdate {};
inline constexpr Builder<NagMomUpdate> nag_mom_update;
inline constexpr Builder<MpNagMomUpdate> mp_nag_mom_update;

// Uses only the sign of the gradient, or of its running mean.
struct SignsgdUpdate {
  Required<double> lr = {};
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
struct SignumUpdate {
  Required<double> lr = {};
  double momentum = 0;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  double wd_lh = 0;
};
inline constexpr Builder<SignsgdUpdate> signsgd_update;
inline constexpr Builder<SignumUpdate> signum_update;

// Delay compensation: the gradient was computed with an older weight and is corrected for the change of the weight
// since. Without momentum the state `mom` holds only the last step.
struct DcasgdUpdate {
  Required<double> lr = {};
  double momentum = 0;
  double lamda = 0.04;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<DcasgdUpdate> dcasgd_update;

// Half a step of gradient descent, and noise of variance lr.
struct SgldUpdate {
  Required<double> lr = {};
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<SgldUpdate> sgld_update;

}  // namespace symbind
