#include "symbind/optim/clip_global_norm.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/exec/arithmetic.h"
#include "symbind/exec/invoke.h"
#include "symbind/ops/multi_optimizer.h"

namespace symbind {

double global_norm(const std::vector<NDArray>& arrays) {
  std::map<Context, std::vector<NDArray>> by_context;
  for (const NDArray& array : arrays) {
    require(bool(array), "[global_norm] was given an empty array");
    by_context[array.context()].push_back(array);
  }
  double sum = 0;
  for (const auto& [context, there] : by_context)
    for (const double square :
         invoke(multi_sum_sq, there, {.num_arrays = static_cast<int64_t>(there.size())})[0].to_vector<double>())
      sum += square;
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) { return std::min(1.0, max_norm / (norm + 1e-8)); }

double clip_global_norm(const std::vector<NDArray>& arrays, double max_norm, bool check_isfinite) {
  require(!arrays.empty(), "[clip_global_norm] was given no arrays");
  require(max_norm > 0, "[clip_global_norm] max_norm must be positive: ", max_norm);
  const double norm = global_norm(arrays);
  if (!std::isfinite(norm)) {
    if (check_isfinite) log_warning("[clip_global_norm] the norm is ", norm, ": the arrays are left as they are");
    return norm;
  }
  const double factor = clip_factor(norm, max_norm);
  if (factor < 1)
    for (NDArray array : arrays) array *= factor;
  return norm;
}

}  // namespace symbind
