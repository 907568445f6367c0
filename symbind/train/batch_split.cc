#include "symbind/train/batch_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/ops/floating.h"
#include "symbind/train/names.h"

namespace symbind {

std::vector<BatchSlice> split_input_slice(int64_t batch_size, const std::vector<double>& work_load_list) {
  require(!work_load_list.empty(), "[executor group] at least one device is needed");
  for (const double load : work_load_list) require(load > 0, "[executor group] a work load must be positive: ", load);
  require(batch_size >= static_cast<int64_t>(work_load_list.size()), "[executor group] a batch of ", batch_size,
          " cannot be split over ", work_load_list.size(), " devices");
  const double total = std::accumulate(work_load_list.begin(), work_load_list.end(), 0.0);
  std::vector<BatchSlice> slices;
  int64_t begin = 0;
  for (size_t i = 0; i < work_load_list.size(); ++i) {
    const bool last = i + 1 == work_load_list.size();
    // A half is rounded to the even number, as Python's round() does.
    const auto share =
        static_cast<int64_t>(std::nearbyint(work_load_list[i] * static_cast<double>(batch_size) / total));
    const int64_t end = last ? batch_size : std::min(batch_size, begin + share);
    require(end > begin, "[executor group] device ", i, " would get none of the ", batch_size,
            " samples; its work load is too small");
    slices.push_back({begin, end});
    begin = end;
  }
  return slices;
}

namespace {

void require_normalizable(const DataDesc& images) {
  if (!images.normalization) return;
  const auto& [mean, std, scale] = *images.normalization;
  require(images.layout == "NCHW" && images.shape.rank() == 4, "[executor group] '", images.name,
          "' is normalized on the devices, which needs the layout NCHW: it has the layout ", images.layout,
          " and the shape ", images.shape);
  const int64_t channels = images.shape[1];
  require(channels == 1 || channels == 3 || channels == 4, "[executor group] '", images.name,
          "' is normalized on the devices, which needs images of 1, 3 or 4 channels: shape ", images.shape);
  require(is_floating(images.dtype), "[executor group] the network gets '", images.name,
          "' normalized, in the type of its description, which must be a floating one, not ", images.dtype);
  const auto fits = [&](const std::vector<double>& numbers) {
    return numbers.size() == 1 || static_cast<int64_t>(numbers.size()) == channels;
  };
  require(fits(mean) && fits(std), "[executor group] the mean and std that '", images.name,
          "' is normalized by must be one number, or one per channel: mean (", comma_separated(mean), "), std (",
          comma_separated(std), "), shape ", images.shape);
  require(std::ranges::find(std, 0) == std.end(), "[executor group] '", images.name, "' is normalized by a std of 0: (",
          comma_separated(std), ")");
}

std::vector<int> batch_axes(const std::vector<DataDesc>& descriptions) {
  std::vector<int> axes;
  for (const DataDesc& description : descriptions) axes.push_back(description.batch_axis());
  return axes;
}

}  // namespace

BatchSplit::BatchSplit(const std::vector<DataDesc>& data, const std::vector<DataDesc>& labels,
                       const std::vector<double>& work_load_list)
    : batch_size(-1),
      data_shapes(data),
      label_shapes(labels),
      data_layouts(batch_axes(data)),
      label_layouts(batch_axes(labels)) {
  require(!data_shapes.empty(), "[executor group] at least one data shape is needed");
  std::string first;
  for (const auto* descriptions : {&data_shapes, &label_shapes})
    for (const DataDesc& description : *descriptions) {
      const int axis = description.batch_axis();
      if (axis < 0) continue;
      require(axis < description.shape.rank(), "[executor group] '", description.name, "' has the layout ",
              description.layout, ", but the shape ", description.shape);
      const int64_t size = description.shape[axis];
      require(batch_size < 0 || size == batch_size, "[executor group] '", first, "' has a batch of ", batch_size, ", '",
              description.name, "' one of ", size, ": ", description.shape);
      if (batch_size < 0) first = description.name;
      batch_size = size;
    }
  require(batch_size >= 0, "[executor group] no input has a batch axis");
  for (const auto* descriptions : {&data_shapes, &label_shapes})
    for (const DataDesc& description : *descriptions) require_normalizable(description);
  slices = split_input_slice(batch_size, work_load_list);
}

NamedShapes BatchSplit::shapes_on(size_t device, const std::vector<std::string>& arguments) const {
  NamedShapes shapes;
  const int64_t size = slices[device].end - slices[device].begin;
  for (const auto* descriptions : {&data_shapes, &label_shapes})
    for (const DataDesc& description : *descriptions) {
      if (!contains(arguments, description.name)) continue;
      const int axis = description.batch_axis();
      shapes[description.name] = axis < 0 ? description.shape : description.shape.with(axis, size);
    }
  return shapes;
}

namespace {

// None: they contradict each other.
std::optional<InferredTypes> inferred(const Symbol& network, const NamedTypes& types) {
  try {
    return infer_type(network, types);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The type in which a network computes with an input that is described with another type, which contradicts the network
// or the other inputs. None: with that one.
std::optional<DType> type_instead(const Symbol& network, const NamedTypes& others,
                                  const NamedTypes::value_type& described) {
  NamedTypes all = others;
  all.insert(described);
  if (inferred(network, all)) return std::nullopt;
  const auto without = inferred(network, others);
  if (!without) return std::nullopt;
  const std::vector<std::string> arguments = network.list_arguments();
  return without->args[static_cast<size_t>(std::ranges::find(arguments, described.first) - arguments.begin())];
}

}  // namespace

NamedTypes BatchSplit::types_in(const Symbol& network) const {
  const std::vector<std::string> arguments = network.list_arguments();
  NamedTypes types, whole_numbers;
  for (const DataDesc& description : data_shapes)
    if (contains(arguments, description.name)) types[description.name] = description.dtype;
  for (const DataDesc& description : label_shapes)
    if (contains(arguments, description.name))
      (is_floating(description.dtype) ? types : whole_numbers)[description.name] = description.dtype;
  for (const auto& label : whole_numbers) {
    const std::optional<DType> instead = type_instead(network, types, label);
    const bool is_converted = instead && (*instead == DType::none || is_floating(*instead));
    if (!is_converted) types.insert(label);  // binding reports the contradiction, if there is one
    require(!is_converted || !is_half(*instead) || size_of(label.second) == 1, "[bind] label '", label.first, "' is ",
            label.second, ", but the network computes with it in ", instead.value_or(DType::none),
            ", which would round it: cast to float32 before the loss");
  }
  return types;
}

}  // namespace symbind
