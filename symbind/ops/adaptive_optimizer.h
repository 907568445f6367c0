// Optimizer steps that scale each element by its past gradients, as operators: Adam and its relatives. Output and
// states as in ops/optimizer.h.
#pragma once

#include "symbind/graph/builder.h"

namespace SYMBIND_API symbind {

struct AdamUpdate {
  Required<double> lr = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  bool lazy_update = true;
};
inline constexpr Builder<AdamUpdate> adam_update;

// Decoupled weight decay; eta multiplies both the step and the decay. (MXNet's operator, adamw_update, has rescale_grad
// as an input: ops/multi_adaptive_optimizer.h.)
struct AdamWStep {
  Required<double> lr = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double wd = 0;
  Required<double> eta = {};
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<AdamWStep> adamw_step;

// `lr` is already divided by 1 - beta1^t.
struct AdamaxUpdate {
  Required<double> lr = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<AdamaxUpdate> adamax_update;

// With the factors of this step's schedule: the weights of the gradient and of the mean in the step, and the bias
// correction of the running square.
struct NadamUpdate {
  Required<double> lr = {};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  Required<double> grad_share = {};
  Required<double> mean_share = {};
  Required<double> square_correction = {};
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<NadamUpdate> nadam_update;

struct FtmlUpdate {
  Required<double> lr = {};
  double beta1 = 0.6;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  Required<int64_t> t = {};
  double wd = 0;
  double rescale_grad = 1;
  double clip_grad = -1;
};
inline constexpr Builder<FtmlUpdate> ftml_update;

struct FtrlUpdate {
  Required<double> lr = {};
  double lamda1 = 0.01;
  double beta = 1;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<FtrlUpdate> ftrl_update;

struct RmspropUpdate {
  Required<double> lr = {};
  double gamma1 = 0.95;
  double epsilon = 1e-8;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  double clip_weights = -1;
};
// Centered RMSProp (Graves).
struct RmspropalexUpdate {
  Required<double> lr = {};
  double gamma1 = 0.95;
  double gamma2 = 0.9;
  double epsilon = 1e-8;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
  double clip_weights = -1;
};
inline constexpr Builder<RmspropUpdate> rmsprop_update;
inline constexpr Builder<RmspropalexUpdate> rmspropalex_update;

struct AdagradUpdate {
  Required<double> lr = {};
  double epsilon = 1e-7;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<AdagradUpdate> adagrad_update;

// One rate for each row of a matrix.
struct GroupAdagradUpdate {
  Required<double> lr = {};
  double rescale_grad = 1;
  double clip_gradient = -1;
  double epsilon = 1e-5;
};
inline constexpr Builder<GroupAdagradUpdate> group_adagrad_update;

struct AdadeltaUpdate {
  double rho = 0.9;
  double epsilon = 1e-5;
  double wd = 0;
  double rescale_grad = 1;
  double clip_gradient = -1;
};
inline constexpr Builder<AdadeltaUpdate> adadelta_update;

// LAMB in two phases: the direction, then a step along it whose length depends on the norms r1 (of the weight) and r2
// (of the direction).
struct LambUpdatePhase1 {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  Required<int64_t> t = {};
  bool bias_correction = true;
  Required<double> wd = {};
  double rescale_grad = 1;
  double clip_gradient = -1;
};
struct LambUpdatePhase2 {
  Required<double> lr = {};
  double lower_bound = -1;  // below 0: none
  double upper_bound = -1;
};
struct MpLambUpdatePhase1 : LambUpdatePhase1 {};
struct MpLambUpdatePhase2 : LambUpdatePhase2 {};
inline constexpr Builder<LambUpdatePhase1> lamb_update_phase1;
inline constexpr Builder<LambUpdatePhase2> lamb_update_phase2;
inline constexpr Builder<MpLambUpdatePhase1> mp_lamb_update_phase1;
inline constexpr Builder<MpLambUpdatePhase2> mp_lamb_update_phase2;

}  // namespace symbind
