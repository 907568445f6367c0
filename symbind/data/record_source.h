// The records of a RecordIO file in an epoch, and their order, for one of several workers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "symbind/data/recordio.h"

namespace symbind {

struct RecordSourceOptions {
  std::string path;
  std::string index_path;  // empty: the records are found by reading the file from its beginning
  bool shuffle = false;
  uint32_t seed = 0;
  uint64_t window_bytes = 0;  // without an index: how much of the file the first epoch shuffles at a time
  int64_t num_parts = 1;
  int64_t part_index = 0;
  std::string who;  // is named in errors
};

// With an index, a part is a run of its lines; without one, the records that begin in a run of the file's bytes. Both
// divide as MXNet does. Without an index the first epoch finds the offsets of the records while it reads them: it is
// shuffled by windows, later epochs as a whole.
class RecordSource {
 public:
  explicit RecordSource(RecordSourceOptions options);

  std::optional<uint64_t> next();  // the offset of the next record; none when the epoch is over
  void begin_epoch();              // starts the next epoch

 private:
  void use_index();
  void scan_window();
  void shuffle_ahead();
  bool scanned() const { return reader_.tell() >= end_; }

  RecordSourceOptions options_;
  RecordReader reader_;
  uint64_t begin_ = 0, end_ = 0;   // of the part, where it is scanned
  std::vector<uint64_t> offsets_;  // of the records known so far, in the order of the file
  std::vector<uint64_t> order_;    // of those that are in this epoch
  size_t next_ = 0;                // in order_
  uint32_t epoch_ = 0, window_ = 0;
};

// The records of one batch after the other.
struct RecordBatch {
  std::vector<uint64_t> offsets;
  int64_t pad = 0;                // how many at the end only fill it up
  uint64_t epoch = 0, first = 0;  // the position of the first sample in its epoch
};

// With `round` the last batch of an epoch takes records of the next one; otherwise it repeats the first ones.
class RecordBatches {
 public:
  RecordBatches(RecordSourceOptions options, int64_t batch_size, bool round)
      : source_(std::move(options)), batch_size_(static_cast<size_t>(batch_size)), round_(round) {}

  std::optional<RecordBatch> next();  // none when the epoch is over
  // `carry`: the last batch took records of the next epoch, which continues after them.
  void reset(bool carry);

 private:
  RecordSource source_;
  size_t batch_size_;
  bool round_;
  bool over_ = false;  // the last batch of the epoch was returned
  uint64_t epoch_ = 0, position_ = 0;
  std::vector<uint64_t> first_;  // records of the epoch
};

}  // namespace symbind
