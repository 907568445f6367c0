// Predictions from any thread.
//
//     Predictor predict("model/digits", 6);
//     NDArray scores = predict(images)[0];
//
// One set of weights serves all threads and all shapes. A call borrows an executor that is not in use: executors are
// compiled once per shape of the inputs, and cached.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "symbind/core/ndarray.h"
#include "symbind/exec/executor.h"

namespace SYMBIND_API symbind {

struct PredictorOptions {
  Context context = cpu();
  // Calls that compute concurrently; further ones wait for their turn. Each has working memory of its own. 0: as many
  // as there are cores, on a GPU two.
  int max_concurrent = 0;
  // Shapes for which each of them caches an executor; the least recently used one is dropped first.
  size_t max_shapes = 16;
  // Cores for one call. 0: one for a call that takes less than a millisecond, else an equal share for each running
  // call.
  int threads = 0;
  CompileOptions compile_options = {};
  // float16 or bfloat16 for a network of float32, whose parameters and outputs stay float32 (ModuleOptions).
  DType compute_dtype = DType::none;
};

// Every member may be called from any thread at any time, except that the arrays of the parameters must not be written
// during a call.
class Predictor {
 public:
  // From prefix-symbol.json and prefix-EPOCH.params.
  Predictor(const std::string& prefix, int epoch, const PredictorOptions& options = {});
  // The parameters are used where they are, if they are on the context, and copied to it otherwise. Names that the
  // network does not have are ignored, so that a part of a network can be given with the parameters of the whole.
  Predictor(const Symbol& symbol, const NamedArrays& arg_params, const NamedArrays& aux_params = {},
            const PredictorOptions& options = {});
  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  // The outputs, in arrays that belong to the caller. Inputs may have any batch size and are converted to the type that
  // the network computes in; arguments that only a gradient reads, such as labels, need not be given.
  std::vector<NDArray> operator()(const NDArray& input) const;  // of a network with one input
  std::vector<NDArray> operator()(const NamedArrays& inputs) const;

  const Symbol& symbol() const;
  const std::vector<std::string>& input_names() const;  // those that must be given
  const std::vector<std::string>& output_names() const;
  const PredictorOptions& options() const;  // with the defaults resolved (no zeros)
  size_t executors() const;                 // cached at the moment

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace symbind
