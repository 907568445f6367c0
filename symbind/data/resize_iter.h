// An iterator whose epochs have a given number of batches: it restarts the wrapped iterator when that ends early, and
// stops before its end when there are enough.
#pragma once

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

class ResizeIter : public DataIter {
 public:
  // `size` batches an epoch. Without reset_internal, reset() does not reset the wrapped iterator: the next epoch
  // continues where it is. A referenced iterator must outlive this one.
  ResizeIter(std::shared_ptr<DataIter> data_iter, int64_t size, bool reset_internal = true);
  ResizeIter(DataIter& data_iter, int64_t size, bool reset_internal = true)
      : ResizeIter(std::shared_ptr<DataIter>(std::shared_ptr<DataIter>(), &data_iter), size, reset_internal) {}

  std::vector<DataDesc> provide_data() const override { return data_iter_->provide_data(); }
  std::vector<DataDesc> provide_label() const override { return data_iter_->provide_label(); }
  int64_t batch_size() const override { return data_iter_->batch_size(); }
  BucketKey default_bucket_key() const override { return data_iter_->default_bucket_key(); }
  void reset() override;
  void begin_epoch() override { data_iter_->begin_epoch(); }
  std::optional<DataBatch> next() override;
  int64_t cur() const { return given_; }  // the number of batches of this epoch so far

 private:
  std::shared_ptr<DataIter> data_iter_;
  int64_t size_;
  bool reset_internal_;
  int64_t given_ = 0;
};

}  // namespace symbind
