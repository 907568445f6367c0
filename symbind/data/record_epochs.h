// What the iterators over RecordIO files of images share: the records of the batches, the seed of random choices, and
// epochs of batches that are prepared ahead.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "symbind/core/error.h"
#include "symbind/data/batch_pipeline.h"
#include "symbind/data/record_source.h"

namespace symbind {

// The options that all of these iterators have, under MXNet's names. `who` is named in errors.
template <class Options>
void check_record_options(const Options& o, std::string_view who) {
  require(!o.path_imgrec.empty(), "[", who, "] needs path_imgrec, a RecordIO file of images");
  require(o.batch_size >= 1, "[", who, "] batch_size must be at least 1: ", o.batch_size);
  require(o.preprocess_threads >= 1 && o.preprocess_threads <= 1024, "[", who,
          "] preprocess_threads must be between 1 and 1024: ", o.preprocess_threads);
  require(o.prefetch_buffer >= 1 && o.prefetch_buffer <= 1024, "[", who,
          "] prefetch_buffer must be between 1 and 1024: ", o.prefetch_buffer);
  require(o.shuffle_chunk_size >= 0 && o.shuffle_chunk_size <= 1 << 20, "[", who,
          "] shuffle_chunk_size must be between 0 and 1048576: ", o.shuffle_chunk_size);
}

template <class Options>
RecordSourceOptions record_source_of(const Options& o, std::string_view who) {
  return {.path = o.path_imgrec,
          .index_path = o.path_imgidx,
          .shuffle = o.shuffle,
          .seed = static_cast<uint32_t>(o.seed.value_or(0)),
          .window_bytes = static_cast<uint64_t>(o.shuffle_chunk_size) << 20,
          .num_parts = o.num_parts,
          .part_index = o.part_index,
          .who = std::string(who)};
}

// A maker of batches of records.
class RecordMaker : public BatchMaker {
 public:
  RecordMaker(RecordSourceOptions source, int64_t batch_size, bool round_batch)
      : path_(source.path), batches_(std::move(source), batch_size, round_batch) {}

  // Both must be called while nothing is in preparation.
  void reset(bool carry) { batches_.reset(carry); }
  void seed(uint64_t key) { key_ = key; }

 protected:
  std::optional<RecordBatch> next_records() { return batches_.next(); }
  void read(RecordReader& reader, uint64_t offset, std::string& record) const;
  const std::string& path() const { return path_; }
  uint64_t key() const { return key_; }  // of the random numbers

 private:
  std::string path_;
  RecordBatches batches_;
  uint64_t key_ = 0;
};

// Epochs of a maker's batches. Serves one thread at a time.
class RecordEpochs {
 public:
  template <class Options>
  RecordEpochs(RecordMaker& maker, const Options& o, std::string_view who)
      : maker_(maker),
        round_batch_(o.round_batch),
        pipeline_(maker, static_cast<size_t>(o.preprocess_threads), static_cast<size_t>(o.prefetch_buffer),
                  std::string(who)) {}

  bool in_this_process() const { return pipeline_.in_this_process(); }  // see BatchPipeline
  // Starts preparing batches, if not started yet. Without a seed, one is drawn from the host's random stream.
  void begin(std::optional<int64_t> seed);
  std::unique_ptr<BatchJob> next();  // after begin(); none when the epoch is over
  void reset();                      // to the beginning of the next epoch

 private:
  RecordMaker& maker_;
  const bool round_batch_;
  BatchPipeline pipeline_;
  bool started_ = false;
  bool carry_ = false;  // the last batch returned has samples of the next epoch
};

}  // namespace symbind
