// The arguments of each optimizer as a struct: optim::Sgd{.learning_rate = 0.1, .momentum = 0.9}. Such a struct can be
// given wherever an optimizer is given by name with a map of arguments (Optimizer::create, fit, init_optimizer). The
// defaults are written here alone: the optimizers hold these structs.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "symbind/optim/lr_scheduler.h"

namespace SYMBIND_API symbind {
namespace optim {

// The options of every optimizer besides its learning rate. Designated initializers do not reach the members of a base
// class, hence a macro. rescale_grad defaults to 1 / batch size in a module and to 1 elsewhere; clip_gradient bounds
// each element of the rescaled gradient, clip_global_norm the norm of all gradients of a step together.
#define SYMBIND_COMMON_OPTIMIZER_OPTIONS                 \
  double wd = 0;                                         \
  LRSchedulerPtr lr_scheduler = nullptr;                 \
  std::optional<double> clip_gradient = std::nullopt;    \
  std::optional<double> clip_global_norm = std::nullopt; \
  std::optional<double> rescale_grad = std::nullopt;     \
  int64_t begin_num_update = 0;                          \
  bool multi_precision = false;

struct Common {
  std::optional<double> learning_rate = std::nullopt;  // none: base_lr of the schedule; without one 0.01
  SYMBIND_COMMON_OPTIMIZER_OPTIONS
};

// Calls visit(name, field) for each of these; visit_own() below does so for the fields of one optimizer alone.
template <class Options, class Visit>
void visit_common(Options& options, Visit&& visit) {
  visit("learning_rate", options.learning_rate);
  visit("wd", options.wd);
  visit("lr_scheduler", options.lr_scheduler);
  visit("clip_gradient", options.clip_gradient);
  visit("clip_global_norm", options.clip_global_norm);
  visit("rescale_grad", options.rescale_grad);
  visit("begin_num_update", options.begin_num_update);
  visit("multi_precision", options.multi_precision);
}

// ---- gradient descent -----------------------------------------------------------------------------------------------

struct Sgd {
  static constexpr const char* name = "sgd";
  std::optional<double> learning_rate = std::nullopt;
  double momentum = 0;
  bool lazy_update = true;  // for sparse gradients: without effect
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("momentum", self.momentum);
    visit("lazy_update", self.lazy_update);
  }
};

// Nesterov's momentum.
struct Nag {
  static constexpr const char* name = "nag";
  std::optional<double> learning_rate = std::nullopt;
  double momentum = 0;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("momentum", self.momentum);
  }
};

struct Sgld {
  static constexpr const char* name = "sgld";
  std::optional<double> learning_rate = std::nullopt;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self&, Visit&&) {}
};

struct Dcasgd {
  static constexpr const char* name = "dcasgd";
  std::optional<double> learning_rate = std::nullopt;
  double momentum = 0;
  double lamda = 0.04;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("momentum", self.momentum);
    visit("lamda", self.lamda);
  }
};

struct Signum {
  static constexpr const char* name = "signum";
  std::optional<double> learning_rate = std::nullopt;
  double momentum = 0.9;
  double wd_lh = 0;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("momentum", self.momentum);
    visit("wd_lh", self.wd_lh);
  }
};

// Signum without momentum.
struct SignSgd {
  static constexpr const char* name = "signsgd";
  std::optional<double> learning_rate = std::nullopt;
  double momentum = 0;
  double wd_lh = 0;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("momentum", self.momentum);
    visit("wd_lh", self.wd_lh);
  }
};

struct Lars {
  static constexpr const char* name = "lars";
  std::optional<double> learning_rate = std::nullopt;
  double momentum = 0;
  bool lazy_update = true;  // for sparse gradients: without effect
  double eta = 0.001;
  double eps = 0;
  bool momentum_correction = true;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("momentum", self.momentum);
    visit("lazy_update", self.lazy_update);
    visit("eta", self.eta);
    visit("eps", self.eps);
    visit("momentum_correction", self.momentum_correction);
  }
};

struct Lbsgd {
  static constexpr const char* name = "lbsgd";
  std::optional<double> learning_rate = std::nullopt;
  double momentum = 0;
  std::string warmup_strategy = "linear";  // or power2, sqrt, lars
  int64_t warmup_epochs = 5;
  int64_t batch_scale = 1;
  int64_t updates_per_epoch = 32;
  int64_t begin_epoch = 0;
  int64_t num_epochs = 60;  // for compatibility with MXNet: without effect
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("momentum", self.momentum);
    visit("warmup_strategy", self.warmup_strategy);
    visit("warmup_epochs", self.warmup_epochs);
    visit("batch_scale", self.batch_scale);
    visit("updates_per_epoch", self.updates_per_epoch);
    visit("begin_epoch", self.begin_epoch);
    visit("num_epochs", self.num_epochs);
  }
};

// ---- Adam and its relatives -----------------------------------------------------------------------------------------

struct Adam {
  static constexpr const char* name = "adam";
  std::optional<double> learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool lazy_update = true;  // for sparse gradients: without effect
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
    visit("epsilon", self.epsilon);
    visit("lazy_update", self.lazy_update);
  }
};

// Adam with decoupled weight decay: the weight itself shrinks by learning_rate · wd.
struct AdamW {
  static constexpr const char* name = "adamw";
  std::optional<double> learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  bool correct_bias = true;  // of the running means, which start at 0
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
    visit("epsilon", self.epsilon);
    visit("correct_bias", self.correct_bias);
  }
};

struct Adamax {
  static constexpr const char* name = "adamax";
  std::optional<double> learning_rate = 0.002;
  double beta1 = 0.9;
  double beta2 = 0.999;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
  }
};

struct Nadam {
  static constexpr const char* name = "nadam";
  std::optional<double> learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double schedule_decay = 0.004;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
    visit("epsilon", self.epsilon);
    visit("schedule_decay", self.schedule_decay);
  }
};

struct Lamb {
  static constexpr const char* name = "lamb";
  std::optional<double> learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  std::optional<double> lower_bound = std::nullopt;
  std::optional<double> upper_bound = std::nullopt;
  bool bias_correction = true;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
    visit("epsilon", self.epsilon);
    visit("lower_bound", self.lower_bound);
    visit("upper_bound", self.upper_bound);
    visit("bias_correction", self.bias_correction);
  }
};

// ---- steps divided by a running mean --------------------------------------------------------------------------------

struct AdaGrad {
  static constexpr const char* name = "adagrad";
  std::optional<double> learning_rate = std::nullopt;
  double eps = 1e-7;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("eps", self.eps);
  }
};

// One sum of squares for each row of a matrix.
struct GroupAdaGrad {
  static constexpr const char* name = "groupadagrad";
  std::optional<double> learning_rate = std::nullopt;
  double eps = 1e-5;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("eps", self.eps);
  }
};

struct RmsProp {
  static constexpr const char* name = "rmsprop";
  std::optional<double> learning_rate = 0.001;
  double gamma1 = 0.9;
  double gamma2 = 0.9;
  double epsilon = 1e-8;
  bool centered = false;
  std::optional<double> clip_weights = std::nullopt;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("gamma1", self.gamma1);
    visit("gamma2", self.gamma2);
    visit("epsilon", self.epsilon);
    visit("centered", self.centered);
    visit("clip_weights", self.clip_weights);
  }
};

// Its steps do not depend on the learning rate.
struct AdaDelta {
  static constexpr const char* name = "adadelta";
  std::optional<double> learning_rate = std::nullopt;
  double rho = 0.9;
  double epsilon = 1e-5;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("rho", self.rho);
    visit("epsilon", self.epsilon);
  }
};

// ---- following a leader ---------------------------------------------------------------------------------------------

struct Ftrl {
  static constexpr const char* name = "ftrl";
  std::optional<double> learning_rate = 0.1;
  double lamda1 = 0.01;
  double beta = 1;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("lamda1", self.lamda1);
    visit("beta", self.beta);
  }
};

struct Ftml {
  static constexpr const char* name = "ftml";
  std::optional<double> learning_rate = std::nullopt;
  double beta1 = 0.6;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  SYMBIND_COMMON_OPTIMIZER_OPTIONS

  template <class Self, class Visit>
  static void visit_own(Self& self, Visit&& visit) {
    visit("beta1", self.beta1);
    visit("beta2", self.beta2);
    visit("epsilon", self.epsilon);
  }
};

#undef SYMBIND_COMMON_OPTIMIZER_OPTIONS

template <class T>
concept Options = requires(T& options) {
  { T::name } -> std::convertible_to<std::string>;
  visit_common(options, [](const char*, auto&) {});
  T::visit_own(options, [](const char*, auto&) {});
};

}  // namespace optim
}  // namespace symbind
