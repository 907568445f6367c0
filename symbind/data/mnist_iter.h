// Batches of MNIST and of data sets in its format, from two idx files: images, and their labels.
//
//     MNISTIter train({.image = "train-images-idx3-ubyte.gz", .label = "train-labels-idx1-ubyte.gz"});
//
// Pixels are divided by 256. Samples that do not fill the last batch are left out; every epoch has the same order,
// which is MXNet's for the same seed.
#pragma once

#include "symbind/data/idx.h"
#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

struct MNISTIterOptions {
  std::string image = "./train-images-idx3-ubyte";  // plain or gzipped
  std::string label = "./train-labels-idx1-ubyte";
  int64_t batch_size = 128;
  bool shuffle = true;
  bool flat = false;  // a sample is one row of pixels, not (1, height, width)
  int64_t seed = 0;
  bool silent = false;  // do not log what was read
  int64_t num_parts = 1;
  int64_t part_index = 0;
  std::string data_name = "data";
  std::string label_name = "softmax_label";
};

class MNISTIter : public DataIter {
 public:
  explicit MNISTIter(MNISTIterOptions options = {});

  std::vector<DataDesc> provide_data() const override;
  std::vector<DataDesc> provide_label() const override;
  int64_t batch_size() const override { return options_.batch_size; }
  int64_t num_data() const { return static_cast<int64_t>(order_.size()); }  // in this part

  void reset() override;
  std::optional<DataBatch> next() override;  // `index` is the position in the files

 private:
  Shape batch_shape() const;

  MNISTIterOptions options_;
  IdxArray images_, labels_;
  std::vector<int64_t> order_;  // the samples of this part
  size_t next_ = 0;
};

}  // namespace symbind
