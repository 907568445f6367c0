// Densities and their gradients, by backend/densities.h. Their time is dominated by logarithms in double.
#include "symbind/ops/random_pdf.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/rows.cuh"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/density_list.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

struct Math {
  static constexpr double log_gamma(double x) { return libm::lgamma(x); }
};

// `each` samples share their parameters.
template <class Distribution>
__global__ void find_densities(AnyInput x, AnyInput first, AnyInput second, AnyOutput out, int64_t count, int64_t each,
                               bool is_log) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const double log_density =
        Distribution::log_density(x.at<double>(i), first.at<double>(i / each), second.at<double>(i / each));
    out.set(i, is_log ? log_density : libm::exp(log_density));
  }
}

template <class Distribution>
std::unique_ptr<Kernel> build_density(const NodeView& node, bool is_log) {
  const int64_t count = node.inputs[0].shape.size(), parameters = node.inputs[1].shape.size();
  const int64_t each = densities::samples_each(count, parameters);
  return make_step(node, [=, last = node.inputs.size() - 1, dtype = node.outputs[0].dtype](const Args& args) {
    if (count == 0) return;
    find_densities<Distribution><<<blocks_for(count), block_size, 0, stream_of(args)>>>(
        AnyInput{args.inputs[0], dtype}, AnyInput{args.inputs[1], dtype}, AnyInput{args.inputs[last], dtype},
        AnyOutput{args.outputs[0], dtype}, count, each, is_log);
  });
}

// A warp for each parameter, whose gradient is a sum over its samples. Gradients that are not requested are null.
template <class Distribution, class T>
__global__ void find_gradients(const T* dy, const T* x, const T* first, const T* second, T* dx, T* dfirst, T* dsecond,
                               int64_t parameters, int64_t each, bool is_log) {
  for (int64_t k = WarpTeam::first_row(); k < parameters; k += WarpTeam::row_step()) {
    const double a = static_cast<double>(load(first[k])), b = static_cast<double>(load(second[k]));
    double first_sum = 0, second_sum = 0;
    for (int64_t i = k * each + WarpTeam::lane(); i < (k + 1) * each; i += WarpTeam::size()) {
      const double sample = static_cast<double>(load(x[i]));
      const double log_density = Distribution::log_density(sample, a, b);
      const double scale = densities::scale_of(static_cast<double>(load(dy[i])), log_density, is_log);
      densities::Slopes slopes;
      if (scale != 0) slopes = Distribution::slopes(sample, a, b);
      if (dx) dx[i] = convert_element<T>(scale * slopes.sample);
      first_sum += scale * slopes.first;
      second_sum += scale * slopes.second;
    }
    first_sum = WarpTeam::combined<Add>(first_sum);
    second_sum = WarpTeam::combined<Add>(second_sum);
    if (WarpTeam::lane() == 0) {
      if (dfirst) dfirst[k] = convert_element<T>(first_sum);
      if (dsecond) dsecond[k] = convert_element<T>(second_sum);
    }
  }
}

template <class Distribution>
std::unique_ptr<Kernel> build_density_gradient(const NodeView& node, bool is_log) {
  const int64_t count = node.inputs[1].shape.size(), parameters = node.inputs[2].shape.size();
  const int64_t each = densities::samples_each(count, parameters);
  const bool two = node.inputs.size() == 4;
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=](const Args& args) {
      if (parameters == 0) return;
      find_gradients<Distribution><<<blocks_for(parameters, block_size / 32), block_size, 0, stream_of(args)>>>(
          args.in<T>(0), args.in<T>(1), args.in<T>(2), args.in<T>(two ? 3 : 2), args.out<T>(0), args.out<T>(1),
          two ? args.out<T>(2) : nullptr, parameters, each, is_log);
    });
  });
}

// ---- Dirichlet: a sample and its parameters are rows ----------------------------------------------------------------

struct DirichletRows {
  int64_t length, samples, parameters, each;
  DirichletRows(const Shape& sample, const Shape& alpha)
      : length(sample[sample.rank() - 1]),
        samples(sample.size(0, sample.rank() - 1)),
        parameters(alpha.size(0, alpha.rank() - 1)),
        each(densities::samples_each(samples, parameters)) {}
};

template <class T>
__device__ double log_density_of(const T* x, const T* alpha, const DirichletRows& rows, int64_t sample) {
  return densities::dirichlet_log_density<Math>(x + sample * rows.length, alpha + sample / rows.each * rows.length,
                                                rows.length);
}

template <class T>
__global__ void find_dirichlet(const T* x, const T* alpha, T* out, DirichletRows rows, bool is_log) {
  for (int64_t i = first_element(); i < rows.samples; i += element_step()) {
    const double log_density = log_density_of(x, alpha, rows, i);
    out[i] = convert_element<T>(is_log ? log_density : libm::exp(log_density));
  }
}

// The factor of the derivatives of each sample.
template <class T>
__global__ void find_dirichlet_scales(const T* dy, const T* x, const T* alpha, double* scales, DirichletRows rows,
                                      bool is_log) {
  for (int64_t i = first_element(); i < rows.samples; i += element_step())
    scales[i] = densities::scale_of(static_cast<double>(load(dy[i])), log_density_of(x, alpha, rows, i), is_log);
}

// A thread for each element of alpha, over the samples that share it.
template <class T>
__global__ void find_dirichlet_gradients(const T* x, const T* alpha, const double* scales, T* dx, T* dalpha,
                                         DirichletRows rows) {
  for (int64_t at = first_element(); at < rows.parameters * rows.length; at += element_step()) {
    const int64_t k = at / rows.length, j = at % rows.length;
    const double own = static_cast<double>(load(alpha[at]));
    double total = 0, sum = 0;
    for (int64_t i = 0; i < rows.length; ++i) total += static_cast<double>(load(alpha[k * rows.length + i]));
    const double shift = functions::digamma(total) - functions::digamma(own);
    for (int64_t i = k * rows.each; i < (k + 1) * rows.each; ++i) {
      const double scale = scales[i], value = static_cast<double>(load(x[i * rows.length + j]));
      if (dx) dx[i * rows.length + j] = convert_element<T>(scale == 0 ? 0.0 : scale * (own - 1) / value);
      if (scale != 0) sum += scale * (libm::log(value) + shift);
    }
    if (dalpha) dalpha[at] = convert_element<T>(sum);
  }
}

std::unique_ptr<Kernel> build_dirichlet(const NodeView& node) {
  const DirichletRows rows(node.inputs[0].shape, node.inputs[1].shape);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [rows, is_log = node.as<RandomPdfDirichlet>().is_log](const Args& args) {
      if (rows.samples == 0) return;
      find_dirichlet<<<blocks_for(rows.samples), block_size, 0, stream_of(args)>>>(args.in<T>(0), args.in<T>(1),
                                                                                   args.out<T>(), rows, is_log);
    });
  });
}

std::unique_ptr<Kernel> build_dirichlet_gradient(const NodeView& node) {
  const DirichletRows rows(node.inputs[1].shape, node.inputs[2].shape);
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node,
                     [rows, is_log = node.as<PdfGrad<RandomPdfDirichlet>>().is_log](const Args& args) {
                       const int64_t elements = rows.parameters * rows.length;
                       if (elements == 0) return;
                       auto* const scales = static_cast<double*>(args.scratch);
                       const T *const x = args.in<T>(1), *const alpha = args.in<T>(2);
                       if (rows.samples > 0)
                         find_dirichlet_scales<<<blocks_for(rows.samples), block_size, 0, stream_of(args)>>>(
                             args.in<T>(0), x, alpha, scales, rows, is_log);
                       find_dirichlet_gradients<<<blocks_for(elements), block_size, 0, stream_of(args)>>>(
                           x, alpha, scales, args.out<T>(0), args.out<T>(1), rows);
                     },
                     {.scratch_bytes = static_cast<size_t>(rows.samples) * sizeof(double)});
  });
}

// ---- All of them ----------------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  if (!is_floating(dtype)) return "wants floating numbers";
  for (const Tensor& input : node.inputs) {
    if (input.dtype != dtype) return "arrays of different types";
    if (input.layout != Layout::plain) return "wants plain arrays";
  }
  return "";
}

}  // namespace

void add_random_pdf(ImplementationTable& table) {
  densities::for_each<Math>([&]<class P, class Distribution>() {
    table.add<P>(
        {"cuda", refuse, [](const NodeView& node) { return build_density<Distribution>(node, node.as<P>().is_log); }});
    table.add<PdfGrad<P>>({"cuda", refuse, [](const NodeView& node) {
                             return build_density_gradient<Distribution>(node, node.as<PdfGrad<P>>().is_log);
                           }});
  });
  table.add<RandomPdfDirichlet>({"cuda", refuse, build_dirichlet});
  table.add<PdfGrad<RandomPdfDirichlet>>({"cuda", refuse, build_dirichlet_gradient});
}

}  // namespace symbind::cuda_backend
