#include "symbind/backend/cuda/conv_finish.h"

#include "symbind/backend/cuda/conv_finish.cuh"
#include "symbind/backend/function_tables.h"

namespace symbind::cuda_backend {

void queue_finish(cudaStream_t stream, const ConvolutionProblem& problem, const std::string& act_type, void* output,
                  const void* residual, const void* bias) {
  if (!bias && !residual && act_type.empty()) return;
  const ConvolutionSize& size = problem.size;
  const ChannelShape shape = problem.channels_last ? ChannelShape{size.batch * size.out_size(), size.filters, 1}
                                                   : ChannelShape{size.batch, size.filters, size.out_size()};
  const auto finish = [&](auto function) {
    visit_floating(problem.dtype, [&]<class T>(std::type_identity<T>) {
      T* const out = static_cast<T*>(output);
      queue_channel_map(stream, shape, aligned_for_packs(out) && aligned_for_packs(residual),
                        FinishOutput<T, decltype(function)>{out, static_cast<const T*>(bias),
                                                            static_cast<const T*>(residual), function});
    });
  };
  if (act_type.empty())
    finish(functions::Identity{});
  else
    functions::visit_activation(functions::ActivationTable{}, act_type, finish);
}

}  // namespace symbind::cuda_backend
