#include "symbind/ops/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "symbind/backend/convert.h"
#include "symbind/backend/cpu/convert_array.h"
#include "symbind/backend/cpu/loops.h"
#include "symbind/backend/cpu/plain.h"
#include "symbind/backend/distributions.h"
#include "symbind/backend/sampling.h"
#include "symbind/core/error.h"
#include "symbind/passes/target.h"

namespace symbind::cpu_backend {
namespace {

using namespace sampling;  // the distributions

// out[i] = a number of the distribution that parameters(i) describes by two numbers.
template <class Numbers, class T, class Parameters>
void draw(const Args& args, int slot, int64_t count, T* out, Parameters parameters) {
  using C = compute_type<T>;
  constexpr int64_t per_block = sampling::per_block<C>;
  const uint64_t key = args.random->key, draw = args.random->draw + static_cast<uint64_t>(slot);
  parallel_for((count + per_block - 1) / per_block, 2048, [=](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const PhiloxBlock block = philox(key, draw, static_cast<uint64_t>(at));
      for (int64_t i = at * per_block; i < std::min(count, (at + 1) * per_block); ++i) {
        const auto [first, second] = parameters(i);
        out[i] = convert<T>(Numbers::draw(block, static_cast<int>(i % per_block), first, second));
      }
    }
  });
}

template <class Numbers>
std::unique_ptr<Kernel> build_random(const NodeView& node, double first, double second) {
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = compute_type<T>;
    return make_kernel([=, slot = node.random_slot, count = node.outputs[0].shape.size()](const Args& args) {
      const std::pair<C, C> both(static_cast<C>(first), static_cast<C>(second));
      draw<Numbers, T>(args, slot, count, args.out<T>(), [both](int64_t) { return both; });
    });
  });
}

template <class Numbers>
std::unique_ptr<Kernel> build_sample(const NodeView& node) {
  const int64_t count = node.outputs[0].shape.size(), distributions = node.inputs[0].shape.size();
  const int64_t each = distributions == 0 ? 1 : std::max<int64_t>(1, count / distributions);
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return visit_dtype(node.inputs[0].dtype, [&](auto input_type) -> std::unique_ptr<Kernel> {
      using In = typename decltype(input_type)::type;
      using C = compute_type<T>;
      return make_kernel([=, slot = node.random_slot](const Args& args) {
        const In *first = args.in<In>(0), *second = args.in<In>(1);
        draw<Numbers, T>(args, slot, count, args.out<T>(), [=](int64_t i) {
          return std::pair<C, C>(convert<C>(first[i / each]), convert<C>(second[i / each]));
        });
      });
    });
  });
}

// ---- from streams ---------------------------------------------------------------------------------------------------

// out[i] = number(i, the stream of element i); the output may be unused.
template <class T, class Number>
void draw_from_streams(const Args& args, int slot, int64_t count, const Number& number) {
  const uint64_t key = args.random->key, draw = args.random->draw + static_cast<uint64_t>(slot);
  parallel_for(count, 512, [=, &number, out = args.out<T>()](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      RandomStream stream(key, draw, static_cast<uint64_t>(i));
      const T drawn = number(i, stream);
      if (out) out[i] = drawn;
    }
  });
}

template <class Numbers>
std::unique_ptr<Kernel> build_random_stream(const NodeView& node, double first, double second = 0) {
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel([=, slot = node.random_slot, count = node.outputs[0].shape.size()](const Args& args) {
      draw_from_streams<T>(args, slot, count, [=](int64_t, RandomStream& stream) {
        return convert<T>(static_cast<compute_type<T>>(Numbers::draw(stream, first, second)));
      });
    });
  });
}

// Of one input or of two.
template <class Numbers>
std::unique_ptr<Kernel> build_sample_stream(const NodeView& node) {
  const int64_t count = node.outputs[0].shape.size(), distributions = node.inputs[0].shape.size();
  const int64_t each = distributions == 0 ? 1 : std::max<int64_t>(1, count / distributions);
  const size_t last_input = node.inputs.size() - 1;
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return visit_dtype(node.inputs[0].dtype, [&](auto input_type) -> std::unique_ptr<Kernel> {
      using In = typename decltype(input_type)::type;
      return make_kernel([=, slot = node.random_slot](const Args& args) {
        const In *first = args.in<In>(0), *second = args.in<In>(last_input);
        draw_from_streams<T>(args, slot, count, [=](int64_t i, RandomStream& stream) {
          const auto a = convert<double>(first[i / each]), b = convert<double>(second[i / each]);
          return convert<T>(static_cast<compute_type<T>>(Numbers::draw(stream, a, b)));
        });
      });
    });
  });
}

std::unique_ptr<Kernel> build_randint(const NodeView& node) {
  const auto& p = node.as<RandomRandint>();
  const auto low = static_cast<uint64_t>(p.low), range = static_cast<uint64_t>(p.high) - low;
  const auto build = [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
    return make_kernel([=, slot = node.random_slot, count = node.outputs[0].shape.size()](const Args& args) {
      draw_from_streams<T>(args, slot, count, [=](int64_t, RandomStream& stream) {
        return static_cast<T>(static_cast<int64_t>(low + stream.below(range)));
      });
    });
  };
  return node.outputs[0].dtype == DType::int32 ? build(std::type_identity<int32_t>{})
                                               : build(std::type_identity<int64_t>{});
}

// ---- multinomial ----------------------------------------------------------------------------------------------------

// sums[row, k] = probabilities[row, 0] + … + probabilities[row, k]
template <class T>
void sum_up(const T* probabilities, int64_t rows, int64_t classes, double* sums, const std::string& where) {
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const auto probability = convert<double>(probabilities[row * classes + k]);
      require(probability >= 0, where, " a probability is ", probability, ": class ", k, " of distribution ", row);
      sums[row * classes + k] = sum += probability;
    }
    require(sum > 0 && std::isfinite(sum), where, " the probabilities of distribution ", row, " sum up to ", sum);
  }
}

std::unique_ptr<Kernel> build_multinomial(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t classes = shape[shape.rank() - 1], rows = shape.size(0, shape.rank() - 1);
  const int64_t count = node.outputs[0].shape.size(), each = rows == 0 ? 1 : std::max<int64_t>(1, count / rows);
  require(classes > 0 || count == 0, node.where(), " there are no classes to draw from: data ", shape);
  return visit_floating(node.inputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return visit_dtype(node.outputs[0].dtype, [&](auto index_type) -> std::unique_ptr<Kernel> {
      using Index = typename decltype(index_type)::type;
      return make_kernel(
          [=, slot = node.random_slot, where = node.where(),
           prob = node.as<SampleMultinomial>().get_prob](const Args& args) {
            if (count == 0) return;
            const T* const data = args.in<T>(0);
            T* const logs = prob ? args.out<T>(1) : nullptr;
            auto* const sums = static_cast<double*>(args.scratch);
            sum_up(data, rows, classes, sums, where);
            draw_from_streams<Index>(args, slot, count, [=](int64_t i, RandomStream& stream) {
              const int64_t row = i / each, chosen = class_of(sums + row * classes, classes, stream.uniform());
              using C = compute_type<T>;
              if (logs) logs[i] = convert<T>(std::log(convert<C>(data[row * classes + chosen])));
              return convert<Index>(chosen);
            });
          },
          {.scratch_bytes = static_cast<size_t>(shape.size()) * sizeof(double)});
    });
  });
}

// log p has the slope 1 / p at the classes that were drawn.
std::unique_ptr<Kernel> build_multinomial_grad(const NodeView& node) {
  const Shape& shape = node.outputs[0].shape;
  const int64_t classes = shape[shape.rank() - 1], rows = shape.size(0, shape.rank() - 1);
  const int64_t count = node.inputs[0].shape.size(), each = rows == 0 ? 1 : count / rows;
  return visit_floating(node.outputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return make_kernel(
        [=, index_type = node.inputs[2].dtype](const Args& args) {
          const T *const dy = args.in<T>(0), *const data = args.in<T>(1);
          auto* const sums = static_cast<double*>(args.scratch);
          auto* const indices = reinterpret_cast<int64_t*>(sums + rows * classes);
          convert_array(indices, DType::int64, args.inputs[2], index_type, count);
          parallel_for(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, classes)),
                       [=](int64_t begin, int64_t end) {
                         std::fill(sums + begin * classes, sums + end * classes, 0.0);
                         for (int64_t i = begin * each; i < end * each; ++i) {
                           const int64_t at = i / each * classes + std::clamp<int64_t>(indices[i], 0, classes - 1);
                           sums[at] += convert<double>(dy[i]) / convert<double>(data[at]);
                         }
                       });
          convert_array(args.outputs[0], dtype_of<T>(), sums, DType::float64, rows * classes);
        },
        {.scratch_bytes = static_cast<size_t>(rows * classes + count) * sizeof(double)});
  });
}

// ---- distinct classes -----------------------------------------------------------------------------------------------

// Classes of one row: numbers are drawn until there are enough distinct ones.
int64_t draw_different(RandomStream& stream, int64_t range_max, int64_t count, int64_t* classes) {
  std::unordered_set<int64_t> seen;
  int64_t tries = 0;
  while (static_cast<int64_t>(seen.size()) < count) {
    ++tries;
    const int64_t chosen = zipfian_class(stream.uniform(), range_max);
    if (seen.insert(chosen).second) classes[seen.size() - 1] = chosen;
  }
  return tries;
}

std::unique_ptr<Kernel> build_unique_zipfian(const NodeView& node) {
  const auto& p = node.as<SampleUniqueZipfian>();
  const int64_t rows = p.shape[0], each = p.shape[1], range_max = p.range_max;
  return make_kernel([=, slot = node.random_slot](const Args& args) {
    const uint64_t draw = args.random->draw + static_cast<uint64_t>(slot);
    auto *const classes = args.out<int64_t>(0), *const tries = args.out<int64_t>(1);
    std::vector<int64_t> row_classes(static_cast<size_t>(each));
    for (int64_t row = 0; row < rows; ++row) {
      RandomStream stream(args.random->key, draw, static_cast<uint64_t>(row));
      const int64_t taken = draw_different(stream, range_max, each, row_classes.data());
      if (tries) tries[row] = taken;
      if (classes) std::copy(row_classes.begin(), row_classes.end(), classes + row * each);
    }
  });
}

// ---- shuffle --------------------------------------------------------------------------------------------------------

std::unique_ptr<Kernel> build_shuffle(const NodeView& node) {
  const Shape& shape = node.inputs[0].shape;
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  const auto bytes = static_cast<size_t>(rows == 0 ? 0 : shape.size() / rows) * size_of(node.inputs[0].dtype);
  return make_kernel(
      [=, slot = node.random_slot](const Args& args) {
        auto* const order = static_cast<int64_t*>(args.scratch);
        std::iota(order, order + rows, int64_t{0});
        const uint64_t draw = args.random->draw + static_cast<uint64_t>(slot);
        for (int64_t left = rows; left > 1; --left) {
          RandomStream stream(args.random->key, draw, static_cast<uint64_t>(left));
          std::swap(order[left - 1], order[stream.below(static_cast<uint64_t>(left))]);
        }
        const auto* const from = args.in<std::byte>(0);
        auto* const to = args.out<std::byte>();
        parallel_for(rows, std::max<int64_t>(1, element_grain / (static_cast<int64_t>(bytes) + 1)),
                     [=](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i)
                         std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(order[i]) * bytes,
                                     bytes);
                     });
      },
      {.scratch_bytes = static_cast<size_t>(rows) * sizeof(int64_t)});
}

void add_randoms_like(ImplementationTable& table) {
  add_plain<RandomUniformLike>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomUniformLike>();
    return build_random<UniformNumbers>(node, p.low, p.high);
  });
  add_plain<RandomNormalLike>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomNormalLike>();
    return build_random<NormalNumbers>(node, p.loc, p.scale);
  });
  add_plain<RandomExponentialLike>(table, [](const NodeView& node) {
    return build_random_stream<ExponentialNumbers>(node, node.as<RandomExponentialLike>().lam);
  });
  add_plain<RandomGammaLike>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomGammaLike>();
    return build_random_stream<GammaNumbers>(node, p.alpha, p.beta);
  });
  add_plain<RandomPoissonLike>(table, [](const NodeView& node) {
    return build_random_stream<PoissonNumbers>(node, node.as<RandomPoissonLike>().lam);
  });
  add_plain<RandomNegativeBinomialLike>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomNegativeBinomialLike>();
    return build_random_stream<NegativeBinomialNumbers>(node, static_cast<double>(p.k), p.p);
  });
  add_plain<RandomGeneralizedNegativeBinomialLike>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomGeneralizedNegativeBinomialLike>();
    return build_random_stream<GeneralizedNegativeBinomialNumbers>(node, p.mu, p.alpha);
  });
}

void add_stream_randoms(ImplementationTable& table) {
  add_plain<RandomExponential>(table, [](const NodeView& node) {
    return build_random_stream<ExponentialNumbers>(node, node.as<RandomExponential>().lam);
  });
  add_plain<RandomGamma>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomGamma>();
    return build_random_stream<GammaNumbers>(node, p.alpha, p.beta);
  });
  add_plain<RandomPoisson>(table, [](const NodeView& node) {
    return build_random_stream<PoissonNumbers>(node, node.as<RandomPoisson>().lam);
  });
  add_plain<RandomNegativeBinomial>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomNegativeBinomial>();
    return build_random_stream<NegativeBinomialNumbers>(node, static_cast<double>(p.k), p.p);
  });
  add_plain<RandomGeneralizedNegativeBinomial>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomGeneralizedNegativeBinomial>();
    return build_random_stream<GeneralizedNegativeBinomialNumbers>(node, p.mu, p.alpha);
  });
  add_plain<RandomRandint>(table, build_randint);
  add_plain<SampleExponential>(table, build_sample_stream<ExponentialNumbers>);
  add_plain<SampleGamma>(table, build_sample_stream<GammaNumbers>);
  add_plain<SamplePoisson>(table, build_sample_stream<PoissonNumbers>);
  add_plain<SampleNegativeBinomial>(table, build_sample_stream<NegativeBinomialNumbers>);
  add_plain<SampleGeneralizedNegativeBinomial>(table, build_sample_stream<GeneralizedNegativeBinomialNumbers>);
}

}  // namespace

void add_random(ImplementationTable& table) {
  add_plain<RandomUniform>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomUniform>();
    return build_random<UniformNumbers>(node, p.low, p.high);
  });
  add_plain<RandomNormal>(table, [](const NodeView& node) {
    const auto& p = node.as<RandomNormal>();
    return build_random<NormalNumbers>(node, p.loc, p.scale);
  });
  add_plain<SampleUniform>(table, build_sample<UniformNumbers>);
  add_plain<SampleNormal>(table, build_sample<NormalNumbers>);
  add_stream_randoms(table);
  add_randoms_like(table);
  add_plain<SampleUniqueZipfian>(table, build_unique_zipfian);
  add_plain<SampleMultinomial>(table, build_multinomial);
  add_plain<SampleMultinomialGrad>(table, build_multinomial_grad);
  add_plain<Shuffle>(table, build_shuffle);
}

}  // namespace symbind::cpu_backend
