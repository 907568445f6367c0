// Strided convolutions over few channels, as the first layer of an image network is one, in another form: a cell of
// stride × stride positions becomes one position with all channels of the cell. The convolution over cells has no
// stride, and enough channels for tensor cores to read whole vectors. A 7 × 7 convolution of stride 2 over three
// channels becomes a 4 × 4 convolution over twelve. Every product of the sums is the same; the others are with zeros.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "symbind/backend/cuda/conv_plan.h"

namespace symbind::cuda_backend {

// How the arrays are rearranged. Two spatial axes; all arrays have their channels last.
struct CellShape {
  int64_t channels = 0, cell_channels = 0;  // the latter rounded up to whole vectors
  int64_t batch = 0, filters = 0;
  std::array<int64_t, 2> in{}, cells{};     // extents of the data and of the array of cells, which includes the padding
  std::array<int64_t, 2> kernel{}, taps{};  // of the kernel, before and after
  std::array<int64_t, 2> stride{}, padding{};  // padding before the data: whole cells
  std::array<int64_t, 2> lead{};               // taps of zeros before the kernel

  constexpr int64_t data_size() const { return batch * cells[0] * cells[1] * cell_channels; }
  constexpr int64_t weight_size() const { return filters * taps[0] * taps[1] * cell_channels; }
};

// A convolution and its form over cells.
class CellConvolution {
 public:
  // With channels rounded up to different multiples. None if the problem does not gain by it, or is the gradient of the
  // data.
  static std::vector<CellConvolution> forms_of(const ConvolutionProblem& problem);

  const ConvolutionProblem& problem() const { return problem_; }  // over cells
  // Memory for the rearranged arrays, aligned to 256 bytes.
  size_t bytes() const { return bytes_; }
  // Rearranges the arrays that the convolution reads; returns those it runs on.
  ConvolutionArrays gather(cudaStream_t stream, const ConvolutionArrays& arrays, void* memory) const;
  // Rearranges the gradient of the weight, where that is the result.
  void scatter(cudaStream_t stream, const ConvolutionArrays& arrays, void* memory) const;

 private:
  static std::optional<CellConvolution> of(const ConvolutionProblem& problem, int64_t multiple);
  CellConvolution(const ConvolutionProblem& problem, const CellShape& shape);

  ConvolutionProblem problem_;
  CellShape shape_;
  size_t weight_at_, bytes_;
};

}  // namespace symbind::cuda_backend
