#include "symbind/train/metric_arrays.h"

#include <algorithm>
#include <limits>

namespace symbind::metric {

NDArray on_host(const NDArray& array) {
  NDArray host = array.context().is_gpu() ? array.as_copy_in(cpu()) : array;
  host.wait_to_read();
  return host;
}

AxisView rows_along(const Shape& shape, int64_t axis, const std::string& metric) {
  return view_along(shape, shape.axis(axis, join("[", metric, "] predictions")));
}

Shape with_columns(const Shape& shape) { return shape.rank() == 1 ? Shape{shape[0], 1} : shape; }

std::vector<NDArray> chosen(const std::string& metric, const char* what, const NamedList& arrays,
                            const std::vector<std::string>& wanted) {
  std::vector<NDArray> result;
  if (wanted.empty())
    for (const auto& [name, array] : arrays) result.push_back(array);
  for (const std::string& name : wanted) {
    const auto found =
        std::find_if(arrays.begin(), arrays.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == arrays.end()) {
      std::vector<std::string> there;
      for (const auto& entry : arrays) there.push_back(entry.first);
      fail("[", metric, "] unknown ", what, " '", name, "'; there are ", comma_separated(there));
    }
    result.push_back(found->second);
  }
  return result;
}

NamedList visible(const NamedList& arrays, const std::vector<std::string>& names) {
  NamedList result;
  for (const auto& entry : arrays)
    if (names.empty() || std::find(names.begin(), names.end(), entry.first) != names.end()) result.push_back(entry);
  return result;
}

void check_counts(const std::string& metric, const std::vector<NDArray>& labels, const std::vector<NDArray>& preds) {
  require(labels.size() == preds.size(), "[", metric, "] there must be as many labels as predictions: ", labels.size(),
          " labels, ", preds.size(), " predictions");
}

void fail_shapes(const std::string& metric, const std::string& rule, const NDArray& label, const NDArray& pred) {
  fail("[", metric, "] ", rule, ": label ", label.shape(), ", prediction ", pred.shape());
}

void fail_label(const std::string& metric, int64_t label, int64_t classes) {
  fail("[", metric, "] a label must be below the ", classes, " classes: ", class_text(label));
}

std::vector<int64_t> classes_of(const NDArray& label) { return label.to_vector<int64_t>(); }

std::string class_text(int64_t label) {
  // What NaN, infinities and numbers beyond an int64 are converted to.
  return label == std::numeric_limits<int64_t>::min() ? "NaN, infinite or too large" : std::to_string(label);
}

std::vector<int64_t> argmax(const NDArray& pred, int64_t axis, const std::string& metric) {
  const NDArray host = on_host(pred);
  const AxisView rows = rows_along(pred.shape(), axis, metric);
  require(rows.length > 0 || rows.row_count() == 0, "[", metric, "] predictions have no classes: ", pred.shape());
  std::vector<int64_t> indices(static_cast<size_t>(rows.row_count()));
  visit_elements(host, [&](const auto* elements) {
    for (int64_t row = 0; row < rows.row_count(); ++row) {
      const auto* values = elements + rows.row_start(row);
      int64_t best = 0;
      for (int64_t k = 0; k < rows.length; ++k) {
        const auto value = values[k * rows.inner], greatest = values[best * rows.inner];
        if (value > greatest) best = k;
        if (is_nan(value)) {
          best = no_class;
          break;
        }
      }
      indices[static_cast<size_t>(row)] = best;
    }
  });
  return indices;
}

}  // namespace symbind::metric
