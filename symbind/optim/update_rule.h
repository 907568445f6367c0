// The arithmetic of one kind of optimizer: the state of a parameter, and how a step changes the weight. A rule knows no
// schedule, no multipliers and no counts: an optimizer that applies a rule (optim/rule_optimizer.h) passes them with
// every step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/core/param_key.h"
#include "symbind/core/state_tree.h"

namespace SYMBIND_API symbind {

struct ResumeState;

// One parameter to be updated.
struct Update {
  ParamKey key;
  NDArray weight;
  NDArray grad;
  StateTree* state;
};

// The smallest unit that must be updated together. A store over several workers decides by it what to divide among
// them.
enum class UpdateUnit {
  element,    // each element by itself, with states of the weight's shape: a parameter may be cut into pieces
  parameter,  // whole parameters: norms, rows
  step,       // all parameters of a step in one call
  sequence,   // all parameters by one updater, since an update depends on those of other parameters before it
};

// Is a parameter of this name decayed by default? Weights and gammas are.
bool decays_by_name(const std::string& parameter);

class UpdateRule {
 public:
  // An update with the numbers of its step.
  struct Step : Update {
    std::string name;              // of the parameter, or its number as text
    double learning_rate = 0;      // for all parameters
    double lr = 0;                 // the same with the multiplier of this one
    double wd = 0;                 // with the multiplier of this one
    int64_t count = 0;             // of this parameter's updates, including this one
    bool multi_precision = false;  // a 16-bit weight whose state has a float32 copy of it
  };

  // Preprocessing of the gradients of all steps.
  struct StepOptions {
    double rescale_grad = 1;
    std::optional<double> clip_gradient = std::nullopt;  // bounds each element of the rescaled gradient
    // For operators that take a bound below 0 as none: an update operator's clip_gradient of 0 is none as well.
    double clip_argument() const { return clip_gradient && *clip_gradient != 0 ? *clip_gradient : -1; }
    bool operator==(const StepOptions&) const = default;
  };

  // An argument of a rule, and where it is stored.
  struct Argument {
    std::string name;
    std::variant<double*, int64_t*, bool*, std::string*, std::optional<double>*> field;
  };

  virtual ~UpdateRule() = default;
  virtual std::string name() const = 0;  // in lower case

  // The arguments that only this kind has, e.g. "momentum". They hold their defaults until they are set.
  virtual std::vector<Argument> arguments() { return {}; }
  virtual void check_arguments() const {}  // throws where they do not fit together
  virtual std::optional<double> default_learning_rate() const { return std::nullopt; }  // none: that of all optimizers
  virtual bool decays(const std::string& parameter) const { return decays_by_name(parameter); }

  virtual StateTree create_state(const std::string& name, const NDArray& weight) const = 0;
  virtual void update(const Step& step, const StepOptions& options) = 0;

  virtual void update_many(std::span<const Step> steps, const StepOptions& options);  // one by one unless overridden
  // Are several parameters given to one update_many()? Then all are counted before the first rate is read.
  virtual bool joint() const { return false; }

  virtual UpdateUnit update_unit() const { return UpdateUnit::parameter; }
  virtual bool draws_random() const { return false; }  // does update() draw random numbers?
  // Is the update of a parameter one operator with an elementwise rule, and nothing else? A device can leave it out
  // (core/update_condition.h).
  virtual bool is_one_operator() const { return false; }
  // Does update() do nothing but invoke the same operators at every step, on the same arrays? The numbers that it
  // passes to them may depend on the options and on the rate and decay of the step, and with_count on its count too. It
  // does not repeat if they depend on state of the rule, or if it allocates arrays.
  enum class Repeats { no, without_count, with_count };
  virtual Repeats repeats() const { return Repeats::no; }

  // Can update() write a 16-bit weight and a float32 copy of it in one pass? Otherwise the copy is updated like any
  // other weight, and written to the weight afterwards; the state is the pair of the copy and its state.
  virtual bool writes_copy() const { return false; }
  virtual StateTree create_state_with_copy(const std::string& name, const NDArray& weight) const;

  // When an update is counted: before its rate is read, usually, so that a schedule sees the update itself. A rule
  // without rates gets none, and no schedule is queried; one whose updates are never counted gets no decay either.
  enum class Counting { before_rate, after_rate, never, without_rate };
  virtual Counting counting() const { return Counting::before_rate; }

  // State that the rule has for all parameters together, besides their own.
  virtual void save(ResumeState& /*state*/) const {}
  virtual void restore(const ResumeState& /*state*/) {}
};
using UpdateRulePtr = std::unique_ptr<UpdateRule>;

// A built-in rule, by name in lower case ("sgd"), with its defaults; another name fails.
UpdateRulePtr make_update_rule(const std::string& name);
std::vector<std::string> list_update_rules();

}  // namespace symbind
