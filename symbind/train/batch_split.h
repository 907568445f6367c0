// How the batch of a network's inputs is divided over devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "symbind/data/iterator.h"
#include "symbind/passes/infer.h"

namespace SYMBIND_API symbind {

// The samples [begin, end) of a batch.
struct BatchSlice {
  int64_t begin = 0, end = 0;
  friend bool operator==(const BatchSlice&, const BatchSlice&) = default;
};

// Splits a batch over devices in proportion to their work loads: sizes are rounded, and the last device takes the rest.
// Each gets at least one sample.
std::vector<BatchSlice> split_input_slice(int64_t batch_size, const std::vector<double>& work_load_list);

// Inputs without a batch axis are on every device as a whole.
struct BatchSplit {
  BatchSplit() = default;
  // Fails if the inputs have different batch sizes, or a normalization (DataDesc) that does not fit them.
  BatchSplit(const std::vector<DataDesc>& data, const std::vector<DataDesc>& labels,
             const std::vector<double>& work_load_list);

  // Of the inputs that are among the arguments: a network need not use every label.
  NamedShapes shapes_on(size_t device, const std::vector<std::string>& arguments) const;
  // A label of integers is converted where the network computes with it in float32 or float64: then its type is left to
  // the network. Half precision would round it, so that this fails.
  NamedTypes types_in(const Symbol& network) const;

  int64_t batch_size = 0;
  std::vector<BatchSlice> slices;  // of each device
  std::vector<DataDesc> data_shapes, label_shapes;
  std::vector<int> data_layouts, label_layouts;  // batch axes
};

}  // namespace symbind
