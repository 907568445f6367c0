// Batches of arrays in memory.
//
//     NDArrayIter train(images, labels, {.batch_size = 64, .shuffle = true});
//     while (const auto batch = train.next()) …
//
// A batch whose rows follow each other in the array is a view of it; other batches are gathered. Samples are along the
// first axis, whatever the layout says.
#pragma once

#include <initializer_list>
#include <utility>

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

// What an iterator takes as data or label: nothing, an array, a list `{a, b}`, or arrays by name `{{"left", a},
// {"right", b}}`, which are used in the order of their names.
class IteratorArrays {
 public:
  IteratorArrays() = default;
  IteratorArrays(const NDArray& array) {
    if (array) arrays_ = {array};
  }
  IteratorArrays(std::vector<NDArray> arrays) : arrays_(std::move(arrays)) {}
  IteratorArrays(std::initializer_list<NDArray> arrays) : arrays_(arrays) {}
  IteratorArrays(const NamedArrays& arrays);
  IteratorArrays(std::initializer_list<NamedArrays::value_type> arrays) : IteratorArrays(NamedArrays(arrays)) {}

  const std::vector<NDArray>& arrays() const { return arrays_; }
  // The given names; without any, `name` for a single array and _0_name, _1_name, … for several.
  std::vector<std::string> names(const std::string& name) const;

 private:
  std::vector<NDArray> arrays_;
  std::vector<std::string> names_;
};

struct NDArrayIterOptions {
  int64_t batch_size = 1;
  // A new order for every epoch, from host_random(). It is drawn when the first batch of the epoch is requested, so
  // training that resumes from a checkpoint sees the samples in the same order as an uninterrupted run.
  bool shuffle = false;
  // What happens to the samples that do not fill the last batch: "pad" fills it up with samples from the beginning,
  // "discard" leaves them out, "roll_over" puts them at the front of the next epoch.
  std::string last_batch_handle = "pad";
  std::string data_name = "data";
  std::string label_name = "softmax_label";
  std::string layout = "NCHW";
  // Each of several workers iterates over its part of the samples.
  int64_t num_parts = 1;
  int64_t part_index = 0;
};

class NDArrayIter : public DataIter {
 public:
  explicit NDArrayIter(IteratorArrays data, IteratorArrays label = {}, NDArrayIterOptions options = {});
  NDArrayIter(IteratorArrays data, NDArrayIterOptions options) : NDArrayIter(std::move(data), {}, std::move(options)) {}

  std::vector<DataDesc> provide_data() const override { return describe(data_); }
  std::vector<DataDesc> provide_label() const override { return describe(label_); }
  int64_t batch_size() const override { return options_.batch_size; }
  int64_t num_data() const { return num_data_; }
  const NDArrayIterOptions& options() const { return options_; }
  struct Source {
    std::string name;
    NDArray array;
  };
  const std::vector<Source>& data() const { return data_; }  // the arrays it iterates over
  const std::vector<Source>& label() const { return label_; }
  int64_t cursor() const { return position_; }  // position of the batch in the epoch; negative before the first
  const std::vector<int64_t>& order() const { return order_; }  // of the samples; empty: that of the arrays
  // Other arrays of as many samples; their order and the position in the epoch stay.
  void set_data(std::vector<Source> data);
  void set_label(std::vector<Source> label);
  // The next batch begins batch_size() samples behind the cursor: -batch_size() is before the first batch.
  void set_cursor(int64_t position);
  // From the next batch on; before the first batch, the epoch still begins with its first sample.
  void set_batch_size(int64_t batch_size);

  // With roll_over, the samples left at the end of an epoch come first in the next; a reset before the end drops them.
  void reset() override;
  void hard_reset();            // drops them always
  void begin_epoch() override;  // shuffles
  std::optional<DataBatch> next() override;

  // next() in steps: iter_next advances to the next batch, the others describe the current one.
  bool iter_next();
  std::vector<NDArray> getdata() const { return batch_of(data_, getindex()); }
  std::vector<NDArray> getlabel() const { return batch_of(label_, getindex()); }
  // With roll_over, MXNet counts in the first batch the samples that come from the epoch before. They are real samples
  // at its front, so the batches of next() have pad 0 there: nothing is to be cut off.
  int64_t getpad() const;
  std::vector<int64_t> getindex() const;  // the rows of the arrays that make up the batch

 private:
  static std::vector<Source> sources(const IteratorArrays& given, const std::string& name);
  void require_samples(const std::vector<Source>& sources) const;
  std::vector<DataDesc> describe(const std::vector<Source>& sources) const;
  static std::vector<NDArray> batch_of(const std::vector<Source>& sources, const std::vector<int64_t>& rows);
  void start(std::vector<int64_t> carried);
  int64_t row(int64_t position) const;
  int64_t epoch_size() const { return static_cast<int64_t>(carried_.size()) + num_data_; }

  std::vector<Source> data_, label_;
  NDArrayIterOptions options_;
  int64_t num_data_ = 0;
  // An epoch is the rows carried over, then all rows in `order_` (empty: in the arrays' order). Positions are relative
  // to the epoch.
  std::vector<int64_t> carried_, order_;
  int64_t position_ = 0;  // of the batch's first sample; before the first batch, one batch before the beginning
  bool drawn_ = false;    // is `order_` that of this epoch?
  bool over_ = false;
};

}  // namespace symbind
