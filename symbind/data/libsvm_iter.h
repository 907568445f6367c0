// Batches of samples in the LibSVM format: a line is a label and the nonzero elements, as index:value with indices from
// 0.
//
//     1 0:0.5 3:2
//     0 1:1.5
//
// The data is stored in memory in sparse form; batches are dense arrays.
#pragma once

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

struct LibSVMIterOptions {
  std::string data_libsvm;  // a file, or a folder of files read in the order of their names
  Shape data_shape;         // of one sample: one axis
  // A file whose lines hold the labels as elements; the first number of its lines is ignored. Empty: the label of a
  // sample is the first number of its line in data_libsvm.
  std::string label_libsvm{};
  Shape label_shape = {1};
  int64_t batch_size = 1;
  bool round_batch = true;  // the last batch takes samples from the next epoch; otherwise it repeats some
  int64_t num_parts = 1;
  int64_t part_index = 0;
  std::string data_name = "data";
  std::string label_name = "softmax_label";
};

class LibSVMIter : public DataIter {
 public:
  // Fails with the file and the line that is not in the format.
  explicit LibSVMIter(LibSVMIterOptions options);
  ~LibSVMIter() override;

  std::vector<DataDesc> provide_data() const override;
  std::vector<DataDesc> provide_label() const override;
  int64_t batch_size() const override;
  int64_t num_data() const;  // in this part

  void reset() override;
  std::optional<DataBatch> next() override;  // `index` counts the non-empty lines of the file

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace symbind
