// Batches of comma-separated numbers: one sample per line; labels are in a second file, one line per sample.
//
//     CSVIter train({.data_csv = "train.csv", .data_shape = {28, 28}, .label_csv = "labels.csv", .batch_size = 32});
//
// The numbers are read into memory once. Samples are not shuffled: use an NDArrayIter over the arrays for that.
#pragma once

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

struct CSVIterOptions {
  std::string data_csv;     // a file, or a folder of files read in the order of their names
  Shape data_shape;         // of one sample; a line holds that many numbers
  std::string label_csv{};  // empty: every label is 0
  Shape label_shape = {1};
  int64_t batch_size = 1;
  bool round_batch = true;       // the last batch takes samples from the next epoch; otherwise it repeats some
  DType dtype = DType::float32;  // of data and labels: float32, float64, int32 or int64
  int64_t num_parts = 1;
  int64_t part_index = 0;
  std::string data_name = "data";
  std::string label_name = "softmax_label";
};

class CSVIter : public DataIter {
 public:
  // Fails with the file and the line of a missing or malformed number.
  explicit CSVIter(CSVIterOptions options);
  ~CSVIter() override;

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
