// Gradients as they are finished. While a watch lives, a backward run of the calling thread reports each gradient array
// after the last step that writes it, so that it can be sent while the run continues. Not reported are: the first run
// of each plan, monitored runs, runs on several contexts or on a GPU, and gradients that are converted to another type
// at the end.
#pragma once

#include <functional>

#include "symbind/core/ndarray.h"

namespace symbind {

class GradientWatch {
 public:
  using Report = std::function<void(const NDArray& gradient)>;
  explicit GradientWatch(Report report);
  ~GradientWatch();
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  static const Report* current();  // of the calling thread; null: there is no watch

 private:
  const Report report_;
  const Report* const before_;
};

}  // namespace symbind
