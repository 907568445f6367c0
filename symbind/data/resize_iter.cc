#include "symbind/data/resize_iter.h"

namespace symbind {

ResizeIter::ResizeIter(std::shared_ptr<DataIter> data_iter, int64_t size, bool reset_internal)
    : data_iter_(std::move(data_iter)), size_(size), reset_internal_(reset_internal) {
  require(data_iter_ != nullptr, "[ResizeIter] needs an iterator");
  require(size_ >= 0, "[ResizeIter] size is a number of batches: ", size_);
}

void ResizeIter::reset() {
  const InUse use = in_use("reset");
  given_ = 0;
  if (reset_internal_) data_iter_->reset();
}

std::optional<DataBatch> ResizeIter::next() {
  const InUse use = in_use("next");
  if (given_ == size_) return std::nullopt;
  std::optional<DataBatch> batch = data_iter_->next();
  if (!batch) {
    data_iter_->reset();
    batch = data_iter_->next();  // none again: there are no batches at all, and the epoch is over
  }
  if (batch) ++given_;
  return batch;
}

}  // namespace symbind
