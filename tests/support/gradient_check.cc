#include "tests/support/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "symbind/core/random.h"

#include "tests/support/arrays.h"

namespace symbind::testing {

namespace {

struct Numbers {
  double step, tolerance, kink;
};

Numbers numbers_for(DType dtype, const GradientCheckOptions& options) {
  Numbers numbers = dtype == DType::float64 ? Numbers{1e-5, 1e-6, 1e-2} : Numbers{1e-2, 2e-2, 0.25};
  if (options.step > 0) numbers.step = options.step;
  if (options.tolerance > 0) numbers.tolerance = options.tolerance;
  return numbers;
}

class Differences {
 public:
  Differences(const Symbol& symbol, const NamedArrays& args, const GradientCheckOptions& options)
      : options_(options), names_(symbol.list_arguments()) {
    std::map<std::string, std::string> requests;
    NamedArrays here, grads;
    for (const auto& [name, array] : args) {
      here[name] = array.as_copy_in(options.context);
      if (!is_floating(array.dtype()) || std::count(options.skip.begin(), options.skip.end(), name) > 0) continue;
      requests[name] = "write";
      grads[name] = zeros(array.shape(), options.context, array.dtype());
    }
    NamedArrays aux;
    for (const auto& [name, array] : options.aux) aux[name] = array.as_copy_in(options.context);
    first_aux_ = options.aux;
    executor_ = bind(symbol, options.context, here, {.args_grad = grads, .grad_req = requests, .aux_states = aux});
  }

  // The loss with element `at` of an argument changed.
  double loss_at(const std::string& name, const std::vector<double>& values, size_t at, double moved) {
    std::vector<double> changed = values;
    changed[at] = moved;
    NDArray target = executor_->arg_dict().at(name);
    target.copy_from(changed);
    return loss();
  }

  double loss() {
    forward();
    if (options_.loss) return options_.loss(executor_->outputs());
    double sum = 0;
    for (size_t i = 0; i < executor_->outputs().size(); ++i) {
      const auto values = executor_->outputs()[i].to_vector<double>();
      for (size_t j = 0; j < values.size(); ++j) sum += weights_[i][j] * values[j];
    }
    return sum;
  }

  // The executor's own gradients.
  NamedArrays gradients() {
    forward();
    std::vector<NDArray> out_grads;
    weights_.clear();
    for (size_t i = 0; i < executor_->outputs().size(); ++i) {
      const NDArray& output = executor_->outputs()[i];
      out_grads.push_back(random_array(output.shape(), 90 + i, -1, 1, output.dtype(), options_.context));
      weights_.push_back(out_grads.back().to_vector<double>());
    }
    executor_->backward(options_.loss ? Arrays() : Arrays(out_grads), options_.is_train);
    NamedArrays copies;
    for (const auto& [name, array] : executor_->grad_dict())
      if (array) copies[name] = array.copy();
    return copies;
  }

  void restore(const std::string& name, const std::vector<double>& values) {
    NDArray target = executor_->arg_dict().at(name);
    target.copy_from(values);
  }

 private:
  void forward() {
    for (const auto& [name, array] : first_aux_) {
      NDArray target = executor_->aux_dict().at(name);
      array.copyto(target);
    }
    symbind::seed(options_.seed);
    executor_->forward(options_.is_train);
  }

  const GradientCheckOptions& options_;
  std::vector<std::string> names_;
  NamedArrays first_aux_;
  ExecutorPtr executor_;
  std::vector<std::vector<double>> weights_;
};

}  // namespace

::testing::AssertionResult check_gradient(const Symbol& symbol, const NamedArrays& args,
                                          const GradientCheckOptions& options) {
  Differences differences(symbol, args, options);
  const NamedArrays gradients = differences.gradients();
  const double here = differences.loss();
  int64_t compared = 0, kinks = 0;

  for (const auto& [name, gradient] : gradients) {
    const auto values = args.at(name).to_vector<double>(), computed = gradient.to_vector<double>();
    const Numbers numbers = numbers_for(args.at(name).dtype(), options);
    const auto stride = static_cast<size_t>(std::max<int64_t>(1, gradient.size() / options.elements));
    for (size_t at = 0; at < values.size(); at += stride) {
      const double above = differences.loss_at(name, values, at, values[at] + numbers.step);
      const double below = differences.loss_at(name, values, at, values[at] - numbers.step);
      const double right = (above - here) / numbers.step, left = (here - below) / numbers.step;
      const double scale = std::max({1.0, std::abs(right), std::abs(left)});
      if (std::abs(right - left) > numbers.kink * scale) {
        ++kinks;
        continue;
      }
      ++compared;
      const double expected = (above - below) / (2 * numbers.step);
      if (!(std::abs(computed[at] - expected) <= numbers.tolerance * scale))
        return ::testing::AssertionFailure()
               << "[" << comma_separated(symbol.list_outputs()) << "] gradient of " << name << " at "
               << index_text(gradient.shape(), static_cast<int64_t>(at)) << " is " << computed[at]
               << ", finite differences give " << expected << " (from the right " << right << ", from the left " << left
               << ", allowed difference " << numbers.tolerance * scale << ")";
    }
    differences.restore(name, values);
  }
  if (kinks > compared)
    return ::testing::AssertionFailure() << kinks << " elements sit on kinks and only " << compared
                                         << " could be compared: choose other inputs";
  return ::testing::AssertionSuccess();
}

}  // namespace symbind::testing
