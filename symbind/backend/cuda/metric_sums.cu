// One launch for few rows or elements, otherwise a second one that adds the sums of the blocks: in their order,
// whatever block was first.
#include "symbind/backend/metric_sums.h"

#include "symbind/backend/cuda/any_type.cuh"
#include "symbind/backend/cuda/rows.cuh"
#include "symbind/backend/cuda/step.h"

namespace symbind::cuda_backend {
namespace {

template <class T>
struct Elements {
  const T* data;
  __device__ compute_type<T> operator()(int64_t i) const { return load(data[i]); }
};

template <class Team>
struct Adding : Team {
  __device__ static int64_t sum(int64_t value) { return Team::template combined<Add>(value); }
};

template <class T>
struct Least {
  __device__ static T identity() { return std::numeric_limits<T>::max(); }
  __device__ static T combine(T a, T b) { return a < b ? a : b; }
};

__device__ MetricPart sum_of_block(const MetricPart& mine) {
  return {combine_block<Add>(mine.sum), combine_block<Add>(mine.counted), combine_block<Least>(mine.failed_row)};
}

struct PairResult {
  MetricFinish finish;
  AnyInput label;
  MetricPart* parts;  // of blocks, if there are several
  double* totals;
};

template <class Team, class Terms>
__global__ void __launch_bounds__(block_size) add_terms(Terms terms, PairResult result) {
  MetricPart mine;
  for (int64_t row = Team::first_row(); row < terms.count; row += Team::row_step())
    terms.template add<Adding<Team>>(row, mine);
  const MetricPart all = sum_of_block(mine);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    result.finish(all, result.label, result.totals);
  else
    result.parts[blockIdx.x] = all;
}

// One block.
template <class Result>
__global__ void __launch_bounds__(block_size) add_parts(Result result, int64_t count) {
  MetricPart mine;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const MetricPart& part = result.parts[i];
    mine.sum += part.sum;
    mine.counted += part.counted;
    mine.fail_at(part.failed_row);
  }
  const MetricPart all = sum_of_block(mine);
  if (threadIdx.x == 0) result.finish(all, result.label, result.totals);
}

template <class Team, class Terms>
void queue_with(cudaStream_t stream, int64_t rows_of_block, const Terms& terms, const PairResult& result) {
  const int64_t wanted = (terms.count + rows_of_block - 1) / rows_of_block;
  const auto blocks = static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, MetricSums::most_parts));
  add_terms<Team><<<blocks, block_size, 0, stream>>>(terms, result);
  if (blocks > 1) add_parts<<<1, block_size, 0, stream>>>(result, blocks);
}

// A term is a few instructions: a block takes some per thread before a second launch pays.
constexpr int64_t terms_of_thread = 4;

template <class Terms>
void queue_terms(cudaStream_t stream, const Terms& terms, const PairResult& result) {
  queue_with<ThreadTeam>(stream, block_size * terms_of_thread, terms, result);
}

template <class T>
void queue_terms(cudaStream_t stream, const TopTerms<Elements<T>, AnyInput>& terms, const PairResult& result) {
  if (terms.rows.inner > 1 || terms.rows.length <= 32)
    queue_with<ThreadTeam>(stream, block_size, terms, result);
  else if (terms.rows.length <= block_size)
    queue_with<WarpTeam>(stream, block_size / 32, terms, result);
  else
    queue_with<BlockTeam>(stream, 1, terms, result);
}

template <class T>
std::unique_ptr<Kernel> build_for(const NodeView& node, const MetricPair& pair) {
  return make_step(node, [pair, finish = MetricFinish::of(pair)](const Args& args) {
    const size_t pred = pair.has_label() ? 1 : 0;
    const AnyInput label{args.inputs[0], pair.label_dtype};
    const PairResult result{finish, label, args.state<MetricPart>(pred + 2), args.state<double>(pred + 1)};
    visit_metric_terms<T>(pair, Elements<T>{args.in<T>(pred)}, label,
                          [&](const auto& terms) { queue_terms(stream_of(args), terms, result); });
  });
}

std::unique_ptr<Kernel> build(const NodeView& node) {
  const MetricPair pair(node);
  return visit_floating(pair.pred_dtype, [&]<class T>(std::type_identity<T>) { return build_for<T>(node, pair); });
}

__global__ void take_totals(double* totals, double* out) { take_metric_totals(totals, out); }

std::unique_ptr<Kernel> build_take(const NodeView& node) {
  return make_step(node, [](const Args& args) {
    take_totals<<<1, 1, 0, stream_of(args)>>>(args.state<double>(0), args.out<double>());
  });
}

std::string refuse(const NodeView& node) {
  for (const Tensor& input : node.inputs)
    if (input.layout != Layout::plain) return "wants plain arrays";
  return "";
}

}  // namespace

void add_metric_sums(ImplementationTable& table) {
  table.add<MetricSums>({"cuda", refuse, build});
  table.add<TakeMetricSums>({"cuda", refuse, build_take});
}

}  // namespace symbind::cuda_backend
