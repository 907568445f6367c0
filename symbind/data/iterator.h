// Input of a network: batches, their descriptions, and iterators over them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/core/busy.h"
#include "symbind/core/ndarray.h"
#include "symbind/data/bucket_key.h"

namespace SYMBIND_API symbind {

// How pixels become the values that a network gets: (pixel - mean) · scale / std for each channel.
struct PixelNormalization {
  std::vector<double> mean = {0}, std = {1};  // one number, or one per channel
  double scale = 1;
  friend bool operator==(const PixelNormalization&, const PixelNormalization&) = default;
};

// One input: its name, the shape of a whole batch, its type, and what its axes mean.
struct DataDesc {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
  std::string layout = "NCHW";
  // Of images in the layout NCHW: arrays of uint8 hold their pixels, which are normalized on the devices that get them.
  std::optional<PixelNormalization> normalization = std::nullopt;

  // The position of N. No layout means 0; a layout without N means -1: the array is not split.
  static int get_batch_axis(const std::optional<std::string>& layout);
  int batch_axis() const { return get_batch_axis(layout); }
  friend bool operator==(const DataDesc&, const DataDesc&) = default;
};

// Arrays in the order of the iterator's descriptions. The last `pad` samples only fill the batch up.
struct DataBatch {
  std::vector<NDArray> data;
  std::vector<NDArray> label = {};  // empty: none
  int64_t pad = 0;
  std::vector<int64_t> index = {};                                   // of the samples, where the iterator knows them
  BucketKey bucket_key = {};                                         // none: the default bucket
  std::optional<std::vector<DataDesc>> provide_data = std::nullopt;  // where they may differ from those bound
  std::optional<std::vector<DataDesc>> provide_label = std::nullopt;
  std::shared_ptr<void> source = nullptr;  // private to the iterator that made the batch: what it was made from
};

// An iterator serves one thread at a time: a call that finds it in use by another thread fails. (PrefetchingIter serves
// any number.)
class DataIter {
 public:
  virtual ~DataIter() = default;
  virtual std::vector<DataDesc> provide_data() const = 0;
  virtual std::vector<DataDesc> provide_label() const = 0;
  virtual int64_t batch_size() const;  // of the first input
  virtual BucketKey default_bucket_key() const { return {}; }
  virtual void reset() = 0;  // to the beginning
  // Draws the random numbers of an epoch; if it is not called, the first next() after a reset does so. Nothing is
  // drawn earlier: training that resumes from a checkpoint restores its random state first.
  virtual void begin_epoch() {}
  virtual std::optional<DataBatch> next() = 0;  // none: the epoch is over

 protected:
  // Every call that reads or moves the position takes it: `const InUse use = in_use("next");`
  InUse in_use(std::string_view call) const {
    return InUse(busy_, call, "this iterator", "let one thread draw the batches, or wrap it in a PrefetchingIter");
  }

 private:
  mutable BusyFlag busy_;
};

}  // namespace symbind
