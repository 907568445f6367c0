// Densities and their gradients, by backend/densities.h.
#include "symbind/ops/random_pdf.h"

#include <cmath>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/density_list.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

// std::lgamma writes to a variable that all threads share.
struct Math {
  static double log_gamma(double x) {
    int sign = 0;
    return ::lgamma_r(x, &sign);
  }
};

using densities::Slopes, densities::scale_of, functions::digamma;

template <class Distribution>
std::unique_ptr<Kernel> build_density(const NodeView& node, bool is_log) {
  const int64_t count = node.inputs[0].shape.size(), parameters = node.inputs[1].shape.size();
  const int64_t each = densities::samples_each(count, parameters);
  const size_t last = node.inputs.size() - 1;
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      const T *const x = args.in<T>(0), *const first = args.in<T>(1), *const second = args.in<T>(last);
      parallel_for(count, 512, [=, out = args.out<T>()](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const double log_density = Distribution::log_density(convert<double>(x[i]), convert<double>(first[i / each]),
                                                               convert<double>(second[i / each]));
          out[i] = convert<T>(is_log ? log_density : std::exp(log_density));
        }
      });
    });
  });
}

// Each thread processes all samples of its parameters, whose gradients are sums over these.
template <class Distribution>
std::unique_ptr<Kernel> build_density_gradient(const NodeView& node, bool is_log) {
  const int64_t count = node.inputs[1].shape.size(), parameters = node.inputs[2].shape.size();
  const int64_t each = densities::samples_each(count, parameters);
  const bool two = node.inputs.size() == 4;
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      const T *const dy = args.in<T>(0), *const x = args.in<T>(1), *const first = args.in<T>(2);
      const T* const second = args.in<T>(two ? 3 : 2);
      T *const dx = args.out<T>(0), *const dfirst = args.out<T>(1), *const dsecond = two ? args.out<T>(2) : nullptr;
      parallel_for(parameters, std::max<int64_t>(1, 512 / std::max<int64_t>(1, each)), [=](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const auto a = convert<double>(first[k]), b = convert<double>(second[k]);
          double first_sum = 0, second_sum = 0;
          for (int64_t i = k * each; i < (k + 1) * each; ++i) {
            const auto sample = convert<double>(x[i]);
            const double scale = scale_of(convert<double>(dy[i]), Distribution::log_density(sample, a, b), is_log);
            const Slopes slopes = scale == 0 ? Slopes{} : Distribution::slopes(sample, a, b);
            if (dx) dx[i] = convert<T>(scale * slopes.sample);
            first_sum += scale * slopes.first;
            second_sum += scale * slopes.second;
          }
          if (dfirst) dfirst[k] = convert<T>(first_sum);
          if (dsecond) dsecond[k] = convert<T>(second_sum);
        }
      });
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

std::unique_ptr<Kernel> build_dirichlet(const NodeView& node) {
  const DirichletRows rows(node.inputs[0].shape, node.inputs[1].shape);
  const bool is_log = node.as<RandomPdfDirichlet>().is_log;
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      const T *const x = args.in<T>(0), *const alpha = args.in<T>(1);
      parallel_for(rows.samples, 64, [=, out = args.out<T>()](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const double log_density = densities::dirichlet_log_density<Math>(
              x + i * rows.length, alpha + i / rows.each * rows.length, rows.length);
          out[i] = convert<T>(is_log ? log_density : std::exp(log_density));
        }
      });
    });
  });
}

std::unique_ptr<Kernel> build_dirichlet_gradient(const NodeView& node) {
  const DirichletRows rows(node.inputs[1].shape, node.inputs[2].shape);
  const bool is_log = node.as<PdfGrad<RandomPdfDirichlet>>().is_log;
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([=](const Args& args) {
      const T *const dy = args.in<T>(0), *const x = args.in<T>(1), *const alpha = args.in<T>(2);
      T *const dx = args.out<T>(0), *const dalpha = args.out<T>(1);
      const int64_t length = rows.length;
      parallel_for(rows.parameters, 16, [=](int64_t begin, int64_t end) {
        std::vector<double> sums(static_cast<size_t>(length));
        for (int64_t k = begin; k < end; ++k) {
          const T* const a = alpha + k * length;
          double total = 0;
          for (int64_t j = 0; j < length; ++j) total += convert<double>(a[j]);
          const double common = digamma(total);
          std::fill(sums.begin(), sums.end(), 0.0);
          for (int64_t i = k * rows.each; i < (k + 1) * rows.each; ++i) {
            const T* const row = x + i * length;
            const double scale =
                scale_of(convert<double>(dy[i]), densities::dirichlet_log_density<Math>(row, a, length), is_log);
            for (int64_t j = 0; j < length; ++j) {
              const auto value = convert<double>(row[j]), own = convert<double>(a[j]);
              if (dx) dx[i * length + j] = convert<T>(scale == 0 ? 0 : scale * (own - 1) / value);
              if (scale != 0) sums[static_cast<size_t>(j)] += scale * (std::log(value) - digamma(own) + common);
            }
          }
          if (dalpha)
            for (int64_t j = 0; j < length; ++j) dalpha[k * length + j] = convert<T>(sums[static_cast<size_t>(j)]);
        }
      });
    });
  });
}

}  // namespace

void add_random_pdf(ImplementationTable& table) {
  densities::for_each<Math>([&]<class P, class Distribution>() {
    add_plain<P>(table, [](const NodeView& node) { return build_density<Distribution>(node, node.as<P>().is_log); });
    add_plain<PdfGrad<P>>(table, [](const NodeView& node) {
      return build_density_gradient<Distribution>(node, node.as<PdfGrad<P>>().is_log);
    });
  });
  add_plain<RandomPdfDirichlet>(table, build_dirichlet);
  add_plain<PdfGrad<RandomPdfDirichlet>>(table, build_dirichlet_gradient);
}

}  // namespace symbind::cpu_backend
