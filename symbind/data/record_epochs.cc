#include "symbind/data/record_epochs.h"

#include "symbind/core/random.h"

namespace symbind {

void RecordMaker::read(RecordReader& reader, uint64_t offset, std::string& record) const {
  reader.seek(offset);
  require(reader.read(record), "[", path_, "] there is no record at offset ", offset);
}

void RecordEpochs::begin(std::optional<int64_t> seed) {
  if (started_) return;
  if (seed) {
    maker_.seed(static_cast<uint64_t>(*seed));
  } else {
    const RandomCursor cursor = host_random().take(1);
    const PhiloxBlock block = philox(cursor.key, cursor.draw, 0);
    maker_.seed(uint64_t{block.words[0]} << 32 | block.words[1]);
  }
  started_ = true;
  pipeline_.start();
}

std::unique_ptr<BatchJob> RecordEpochs::next() {
  std::unique_ptr<BatchJob> job = pipeline_.take();
  if (job) carry_ = round_batch_ && job->batch.pad > 0;
  return job;
}

void RecordEpochs::reset() {
  if (!started_) return;
  pipeline_.stop();
  maker_.reset(carry_);
  started_ = carry_ = false;
}

}  // namespace symbind
