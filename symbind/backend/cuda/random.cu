// Random arrays from the same counters as on a CPU. The cursor is in device memory, so a captured plan draws new
// numbers at each launch.
#include "symbind/ops/random.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/device.h"
#include "symbind/backend/cuda/random.h"
#include "symbind/backend/cuda/random_choices.h"
#include "symbind/backend/cuda/step.h"
#include "symbind/backend/distributions.h"
#include "symbind/backend/sampling.h"
#include "symbind/backend/visit_types.h"
#include "symbind/passes/target.h"

namespace symbind::cuda_backend {
namespace {

__global__ void write_cursor(RandomCursor* cursor, RandomCursor value) { *cursor = value; }

// ---- The parameters of distributions --------------------------------------------------------------------------------

// The same for all numbers.
struct Fixed {
  double first, second;
  template <class C>
  __device__ C first_of(int64_t) const {
    return static_cast<C>(first);
  }
  template <class C>
  __device__ C second_of(int64_t) const {
    return static_cast<C>(second);
  }
};

// Those of `each` numbers are an element of each of two arrays, or of one.
struct OfElements {
  AnyInput first, second;
  int64_t each;
  template <class C>
  __device__ C first_of(int64_t i) const {
    return first.at<C>(i / each);
  }
  template <class C>
  __device__ C second_of(int64_t i) const {
    return second.at<C>(i / each);
  }
};

// Makes them when the kernel runs.
struct MakeFixed {
  Fixed parameters;
  Fixed of(const Args&) const { return parameters; }
};
struct MakeOfElements {
  DType dtype, last_dtype;
  size_t last;
  int64_t each;

  explicit MakeOfElements(const NodeView& node)
      : dtype(node.inputs[0].dtype), last_dtype(node.inputs.back().dtype), last(node.inputs.size() - 1) {
    const int64_t count = node.outputs[0].shape.size(), distributions = node.inputs[0].shape.size();
    each = distributions == 0 ? 1 : std::max<int64_t>(1, count / distributions);
  }
  OfElements of(const Args& args) const { return {{args.inputs[0], dtype}, {args.inputs[last], last_dtype}, each}; }
};

// ---- Numbers of which each takes a part of a block ------------------------------------------------------------------

// Each thread draws whole blocks.
template <class Numbers, class T, class Parameters>
__global__ void draw_numbers(T* out, int64_t count, const RandomCursor* cursor, uint64_t slot, Parameters parameters) {
  using C = compute_type<T>;
  constexpr int per_block = sampling::per_block<C>;
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t at = first_element(); at * per_block < count; at += element_step()) {
    const PhiloxBlock block = philox(key, draw, static_cast<uint64_t>(at));
    for (int index = 0; index < per_block && at * per_block + index < count; ++index) {
      const int64_t i = at * per_block + index;
      out[i] = store<T>(
          Numbers::draw(block, index, parameters.template first_of<C>(i), parameters.template second_of<C>(i)));
    }
  }
}

uint64_t slot_of(const NodeView& node) { return static_cast<uint64_t>(std::max(node.random_slot, 0)); }

template <class Numbers, class Make>
std::unique_ptr<Kernel> build_from_blocks(const NodeView& node, const Make& make) {
  return visit_floating(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    constexpr int64_t per_block = sampling::per_block<compute_type<T>>;
    return make_step(node, [make, slot = slot_of(node), count = node.outputs[0].shape.size()](const Args& args) {
      if (count == 0) return;
      draw_numbers<Numbers><<<blocks_for((count + per_block - 1) / per_block), block_size, 0, stream_of(args)>>>(
          args.out<T>(), count, args.random, slot, make.of(args));
    });
  });
}

// ---- Numbers of which each has a stream -----------------------------------------------------------------------------

template <class Numbers, class Parameters>
__global__ void draw_from_streams(AnyOutput out, int64_t count, const RandomCursor* cursor, uint64_t slot,
                                  Parameters parameters) {
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    sampling::RandomStream stream(key, draw, static_cast<uint64_t>(i));
    out.set(i,
            Numbers::draw(stream, parameters.template first_of<double>(i), parameters.template second_of<double>(i)));
  }
}

template <class Numbers, class Make>
std::unique_ptr<Kernel> build_from_streams(const NodeView& node, const Make& make) {
  return make_step(node, [make, slot = slot_of(node), dtype = node.outputs[0].dtype,
                          count = node.outputs[0].shape.size()](const Args& args) {
    if (count == 0 || !args.outputs[0]) return;
    draw_from_streams<Numbers><<<blocks_for(count), block_size, 0, stream_of(args)>>>(
        AnyOutput{args.outputs[0], dtype}, count, args.random, slot, make.of(args));
  });
}

template <class T>
__global__ void draw_integers(T* out, int64_t count, const RandomCursor* cursor, uint64_t slot, uint64_t low,
                              uint64_t range) {
  const uint64_t key = cursor->key, draw = cursor->draw + slot;
  for (int64_t i = first_element(); i < count; i += element_step()) {
    sampling::RandomStream stream(key, draw, static_cast<uint64_t>(i));
    out[i] = static_cast<T>(static_cast<int64_t>(low + stream.below(range)));
  }
}

std::unique_ptr<Kernel> build_randint(const NodeView& node) {
  const auto& p = node.as<RandomRandint>();
  const auto low = static_cast<uint64_t>(static_cast<int64_t>(p.low));
  const uint64_t range = static_cast<uint64_t>(static_cast<int64_t>(p.high)) - low;
  return visit_types<int32_t, int64_t>(node.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    return make_step(node, [=, slot = slot_of(node), count = node.outputs[0].shape.size()](const Args& args) {
      if (count == 0) return;
      draw_integers<<<blocks_for(count), block_size, 0, stream_of(args)>>>(args.out<T>(), count, args.random, slot, low,
                                                                           range);
    });
  });
}

// ---- The operators --------------------------------------------------------------------------------------------------

std::string refuse(const NodeView& node) { return is_floating(node.outputs[0].dtype) ? "" : "wants floating numbers"; }
std::string refuse_randint(const NodeView& node) {
  const DType dtype = node.outputs[0].dtype;
  return dtype == DType::int32 || dtype == DType::int64 ? "" : "wants int32 or int64";
}

// parameters(P) gives the two parameters.
template <class P, class Numbers, class ParametersOf>
void add_block(ImplementationTable& table, ParametersOf parameters) {
  table.add<P>({"cuda", refuse, [parameters](const NodeView& node) {
                  return build_from_blocks<Numbers>(node, MakeFixed{parameters(node.as<P>())});
                }});
}
template <class P, class Numbers, class ParametersOf>
void add_stream(ImplementationTable& table, ParametersOf parameters) {
  table.add<P>({"cuda", refuse, [parameters](const NodeView& node) {
                  return build_from_streams<Numbers>(node, MakeFixed{parameters(node.as<P>())});
                }});
}
template <class P, class Numbers>
void add_sample(ImplementationTable& table) {
  table.add<P>(
      {"cuda", refuse, [](const NodeView& node) { return build_from_streams<Numbers>(node, MakeOfElements(node)); }});
}
template <class P, class Numbers>
void add_block_sample(ImplementationTable& table) {
  table.add<P>(
      {"cuda", refuse, [](const NodeView& node) { return build_from_blocks<Numbers>(node, MakeOfElements(node)); }});
}

void add_fixed(ImplementationTable& table) {
  using namespace sampling;
  const auto range = [](const auto& p) { return Fixed{p.low, p.high}; };
  const auto bell = [](const auto& p) { return Fixed{p.loc, p.scale}; };
  const auto rate = [](const auto& p) { return Fixed{p.lam, 0}; };
  const auto shape = [](const auto& p) { return Fixed{p.alpha, p.beta}; };
  const auto failures = [](const auto& p) { return Fixed{static_cast<double>(p.k), p.p}; };
  const auto dispersion = [](const auto& p) { return Fixed{p.mu, p.alpha}; };
  add_block<RandomUniform, UniformNumbers>(table, range);
  add_block<RandomUniformLike, UniformNumbers>(table, range);
  add_block<RandomNormal, NormalNumbers>(table, bell);
  add_block<RandomNormalLike, NormalNumbers>(table, bell);
  add_stream<RandomExponential, ExponentialNumbers>(table, rate);
  add_stream<RandomExponentialLike, ExponentialNumbers>(table, rate);
  add_stream<RandomGamma, GammaNumbers>(table, shape);
  add_stream<RandomGammaLike, GammaNumbers>(table, shape);
  add_stream<RandomPoisson, PoissonNumbers>(table, rate);
  add_stream<RandomPoissonLike, PoissonNumbers>(table, rate);
  add_stream<RandomNegativeBinomial, NegativeBinomialNumbers>(table, failures);
  add_stream<RandomNegativeBinomialLike, NegativeBinomialNumbers>(table, failures);
  add_stream<RandomGeneralizedNegativeBinomial, GeneralizedNegativeBinomialNumbers>(table, dispersion);
  add_stream<RandomGeneralizedNegativeBinomialLike, GeneralizedNegativeBinomialNumbers>(table, dispersion);
  table.add<RandomRandint>({"cuda", refuse_randint, build_randint});
}

}  // namespace

void queue_cursor(cudaStream_t stream, RandomCursor* cursor, RandomCursor value) {
  write_cursor<<<1, 1, 0, stream>>>(cursor, value);
}

void add_random(ImplementationTable& table) {
  using namespace sampling;
  add_fixed(table);
  add_block_sample<SampleUniform, UniformNumbers>(table);
  add_block_sample<SampleNormal, NormalNumbers>(table);
  add_sample<SampleExponential, ExponentialNumbers>(table);
  add_sample<SampleGamma, GammaNumbers>(table);
  add_sample<SamplePoisson, PoissonNumbers>(table);
  add_sample<SampleNegativeBinomial, NegativeBinomialNumbers>(table);
  add_sample<SampleGeneralizedNegativeBinomial, GeneralizedNegativeBinomialNumbers>(table);
  add_random_choices(table);
}

}  // namespace symbind::cuda_backend
