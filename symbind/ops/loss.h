// Loss heads: operators that start the backward pass themselves, whatever gradient arrives.
#pragma once

#include "symbind/graph/builder.h"
#include "symbind/ops/choices.h"

namespace SYMBIND_API symbind {

struct AxisView;

struct SoftmaxOutput {
  double grad_scale = 1;
  double ignore_label = -1;
  bool multi_output = false;
  bool use_ignore = false;
  bool preserve_shape = false;
  std::string normalization = "null";  // batch, null, valid
  bool out_grad = false;
  double smooth_alpha = 0;
};
inline constexpr Builder<SoftmaxOutput> softmax_output;

// (output, label) → data_grad; with out_grad set (out_grad, output, label).
struct SoftmaxOutputGrad : SoftmaxOutput {};
inline constexpr Builder<SoftmaxOutputGrad> softmax_output_grad;

// The view of data of known shape along the class axis, over which softmax is computed.
AxisView size_of(const SoftmaxOutput& params, const Shape& data);

struct LinearRegressionOutput {
  double grad_scale = 1;
};
inline constexpr Builder<LinearRegressionOutput> linear_regression_output;
struct LogisticRegressionOutput {
  double grad_scale = 1;
};
inline constexpr Builder<LogisticRegressionOutput> logistic_regression_output;
struct MAERegressionOutput {
  double grad_scale = 1;
};
inline constexpr Builder<MAERegressionOutput> mae_regression_output;

// (output, label) → data_grad
struct LinearRegressionOutputGrad : LinearRegressionOutput {};
inline constexpr Builder<LinearRegressionOutputGrad> linear_regression_output_grad;
struct MAERegressionOutputGrad : MAERegressionOutput {};
inline constexpr Builder<MAERegressionOutputGrad> mae_regression_output_grad;

struct SVMOutput {
  double margin = 1;
  double regularization_coefficient = 1;
  bool use_linear = false;
};
inline constexpr Builder<SVMOutput> svm_output;

// (output, label) → data_grad
struct SVMOutputGrad : SVMOutput {};
inline constexpr Builder<SVMOutputGrad> svm_output_grad;

struct SoftmaxCrossEntropy {};
inline constexpr Builder<SoftmaxCrossEntropy> softmax_cross_entropy;

// (out_grad, data, label) → data_grad
struct SoftmaxCrossEntropyGrad : SoftmaxCrossEntropy {};
inline constexpr Builder<SoftmaxCrossEntropyGrad> softmax_cross_entropy_grad;

struct MakeLoss {
  double grad_scale = 1;
  double valid_thresh = 0;
  std::string normalization = "null";  // batch, null, valid
};
inline constexpr Builder<MakeLoss> make_loss;

// data → data_grad; reads the data only when the normalization is valid.
struct MakeLossGrad : MakeLoss {};
inline constexpr Builder<MakeLossGrad> make_loss_grad;

}  // namespace symbind
