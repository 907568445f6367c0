// Sentences as word numbers, and batches of sentences of similar length.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "symbind/data/iterator.h"

namespace SYMBIND_API symbind {

using Vocabulary = std::map<std::string, int64_t>;

struct EncodingOptions {
  int64_t invalid_label = -1;  // no word gets this number, which is that of invalid_key
  std::string invalid_key = "\n";
  int64_t start_label = 0;  // of the first word of a new vocabulary
  // With a given vocabulary: words that are not in it become this one, which is added if it is new. None: they fail.
  std::optional<std::string> unknown_token = {};
};

struct EncodedSentences {
  std::vector<std::vector<int64_t>> sentences;
  Vocabulary vocabulary;
};

// Without a vocabulary a new one numbers the words in order of appearance.
EncodedSentences encode_sentences(const std::vector<std::vector<std::string>>& sentences,
                                  const std::optional<Vocabulary>& vocabulary = std::nullopt,
                                  const EncodingOptions& options = {});

struct BucketSentenceOptions {
  std::vector<int64_t> buckets = {};  // lengths; empty: every length that at least one batch of sentences has
  int64_t invalid_label = -1;         // fills up sentences shorter than their bucket
  std::string data_name = "data";
  std::string label_name = "softmax_label";
  DType dtype = DType::float32;
  std::string layout = "NT";  // (batch, length), or TN
};

// Sentences in batches of the same bucket: the shortest length that holds them. The label is the data shifted by one
// word: at each position the next word. Sentences longer than the largest bucket are left out, and so are those that do
// not fill a batch, different ones in each epoch.
//
// Every epoch draws an order of the batches and of each bucket's sentences from host_random(): seed(n) makes it
// reproducible. Serves one thread at a time.
class BucketSentenceIter : public DataIter {
 public:
  using Key = decltype(DataBatch::bucket_key);

  BucketSentenceIter(const std::vector<std::vector<int64_t>>& sentences, int64_t batch_size,
                     BucketSentenceOptions options = {});

  std::vector<DataDesc> provide_data() const override {
    return {describe(options_.data_name, options_.buckets.back())};
  }
  std::vector<DataDesc> provide_label() const override {
    return {describe(options_.label_name, options_.buckets.back())};
  }
  int64_t batch_size() const override { return batch_size_; }
  Key default_bucket_key() const override { return key_of(options_.buckets.back()); }
  void reset() override;
  void begin_epoch() override;
  std::optional<DataBatch> next() override;

  const std::vector<int64_t>& buckets() const { return options_.buckets; }
  int64_t discarded() const { return discarded_; }  // sentences longer than the largest bucket
  int64_t num_batches() const;                      // of an epoch

 private:
  struct Bucket {
    int64_t length;
    std::vector<int64_t> words;  // (sentences, length)
    std::vector<int64_t> order;  // of the sentences, in this epoch
    int64_t sentences() const { return static_cast<int64_t>(order.size()); }
  };
  struct Batch {
    size_t bucket;
    int64_t first;  // sentence, in the order of the epoch
  };

  static Key key_of(int64_t length);
  DataDesc describe(const std::string& name, int64_t length) const;
  NDArray array_of(const Bucket& bucket, int64_t first, bool moved) const;
  void draw();

  BucketSentenceOptions options_;
  int64_t batch_size_, discarded_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<Batch> batches_;
  size_t position_ = 0;
  bool drawn_ = false;
};

}  // namespace symbind
