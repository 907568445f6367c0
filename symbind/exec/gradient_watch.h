// Gradients as they are finished. While a watch lives, a backward run of the calling thread reports each gradient array
// after the last step that writes it, so that it can be sent elsewhere while the run goes on. Runs that cannot tell
// report nothing: the first of each plan, monitored ones, those of several contexts or on a GPU, and gradients that are
// converted to another type at the end.
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

  static const Report* current();  // of the calling thread; null: nobody watches

 private:
  const Report report_;
  const Report* const before_;
};

}  // namespace symbind
