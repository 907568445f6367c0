#include "symbind/data/sentences.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "symbind/core/error.h"
#include "symbind/core/log.h"
#include "symbind/data/shuffle.h"

namespace symbind {

// ---- Words as numbers -----------------------------------------------------------------------------------------------

namespace {

class Encoder {
 public:
  Encoder(const std::optional<Vocabulary>& vocabulary, const EncodingOptions& options)
      : options_(options), is_new_(!vocabulary), next_(options.start_label) {
    if (vocabulary) {
      words_ = *vocabulary;
      for (const auto& [word, number] : words_) next_ = std::max(next_, number + 1);
    } else {
      words_[options.invalid_key] = options.invalid_label;
    }
  }
  int64_t number_of(const std::string& word) {
    const auto found = words_.find(word);
    if (found != words_.end()) return found->second;
    if (is_new_) return add(word);
    require(options_.unknown_token.has_value(), "[encode_sentences] '", word,
            "' is not in the vocabulary; give unknown_token to replace unknown words");
    const auto unknown = words_.find(*options_.unknown_token);
    return unknown != words_.end() ? unknown->second : add(*options_.unknown_token);
  }
  Vocabulary take() { return std::move(words_); }

 private:
  int64_t add(const std::string& word) {
    if (next_ == options_.invalid_label) ++next_;
    return words_[word] = next_++;
  }

  const EncodingOptions& options_;
  bool is_new_;
  int64_t next_;
  Vocabulary words_;
};

}  // namespace

EncodedSentences encode_sentences(const std::vector<std::vector<std::string>>& sentences,
                                  const std::optional<Vocabulary>& vocabulary, const EncodingOptions& options) {
  Encoder encoder(vocabulary, options);
  EncodedSentences encoded;
  for (const auto& sentence : sentences) {
    auto& numbers = encoded.sentences.emplace_back();
    for (const std::string& word : sentence) numbers.push_back(encoder.number_of(word));
  }
  encoded.vocabulary = encoder.take();
  return encoded;
}

// ---- Batches --------------------------------------------------------------------------------------------------------

namespace {

// The lengths that enough sentences have.
std::vector<int64_t> common_lengths(const std::vector<std::vector<int64_t>>& sentences, int64_t least) {
  std::map<int64_t, int64_t> counts;
  for (const auto& sentence : sentences) ++counts[static_cast<int64_t>(sentence.size())];
  std::vector<int64_t> lengths;
  for (const auto& [length, count] : counts)
    if (count >= least && length > 0) lengths.push_back(length);
  return lengths;
}

}  // namespace

BucketSentenceIter::BucketSentenceIter(const std::vector<std::vector<int64_t>>& sentences, int64_t batch_size,
                                       BucketSentenceOptions options)
    : options_(std::move(options)), batch_size_(batch_size) {
  require(batch_size > 0, "[BucketSentenceIter] batch_size must be above 0: ", batch_size);
  require(options_.layout == "NT" || options_.layout == "TN",
          "[BucketSentenceIter] layout must be NT or TN: ", options_.layout);
  if (options_.buckets.empty()) options_.buckets = common_lengths(sentences, batch_size);
  require(!options_.buckets.empty(), "[BucketSentenceIter] no length has ", batch_size,
          " sentences; give the lengths of the buckets");
  std::sort(options_.buckets.begin(), options_.buckets.end());
  require(options_.buckets.front() > 0, "[BucketSentenceIter] buckets are lengths above 0: ", options_.buckets.front());
  for (const int64_t length : options_.buckets) buckets_.push_back({length, {}, {}});
  for (const auto& sentence : sentences) {
    const auto length = static_cast<int64_t>(sentence.size());
    const auto found = std::lower_bound(options_.buckets.begin(), options_.buckets.end(), length);
    if (found == options_.buckets.end()) {
      ++discarded_;
      continue;
    }
    Bucket& bucket = buckets_[static_cast<size_t>(found - options_.buckets.begin())];
    bucket.words.insert(bucket.words.end(), sentence.begin(), sentence.end());
    bucket.words.insert(bucket.words.end(), static_cast<size_t>(bucket.length - length), options_.invalid_label);
    bucket.order.push_back(bucket.sentences());
  }
  if (discarded_ > 0)
    log_warning("[BucketSentenceIter] ", discarded_, " sentences are longer than the largest bucket and left out");
}

BucketSentenceIter::Key BucketSentenceIter::key_of(int64_t length) {
  const auto make = [&]<class Any>(std::type_identity<Any>) -> Any {
    if constexpr (std::is_same_v<Any, std::string>)
      return std::to_string(length);
    else
      return length;
  };
  return make(std::type_identity<Key>{});
}

DataDesc BucketSentenceIter::describe(const std::string& name, int64_t length) const {
  const Shape shape = options_.layout == "NT" ? Shape{batch_size_, length} : Shape{length, batch_size_};
  return {name, shape, options_.dtype, options_.layout};
}

void BucketSentenceIter::reset() {
  const InUse use = in_use("reset");
  position_ = 0;
  drawn_ = false;
}

void BucketSentenceIter::begin_epoch() {
  const InUse use = in_use("begin_epoch");
  draw();
}

int64_t BucketSentenceIter::num_batches() const {
  int64_t batches = 0;
  for (const Bucket& bucket : buckets_) batches += bucket.sentences() / batch_size_;
  return batches;
}

void BucketSentenceIter::draw() {
  if (drawn_) return;
  drawn_ = true;
  std::vector<Batch> in_order;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    buckets_[i].order = random_order(buckets_[i].sentences());
    for (int64_t first = 0; first + batch_size_ <= buckets_[i].sentences(); first += batch_size_)
      in_order.push_back({i, first});
  }
  batches_.clear();
  for (const int64_t number : random_order(static_cast<int64_t>(in_order.size())))
    batches_.push_back(in_order[static_cast<size_t>(number)]);
}

NDArray BucketSentenceIter::array_of(const Bucket& bucket, int64_t first, bool moved) const {
  const int64_t length = bucket.length;
  std::vector<int64_t> values(static_cast<size_t>(batch_size_ * length));
  for (int64_t row = 0; row < batch_size_; ++row) {
    const int64_t sentence = bucket.order[static_cast<size_t>(first + row)];
    for (int64_t t = 0; t < length; ++t) {
      const bool beyond = moved && t + 1 == length;
      const int64_t word =
          beyond ? options_.invalid_label : bucket.words[static_cast<size_t>(sentence * length + t + (moved ? 1 : 0))];
      values[static_cast<size_t>(options_.layout == "NT" ? row * length + t : t * batch_size_ + row)] = word;
    }
  }
  NDArray array(describe("", length).shape, cpu(), options_.dtype);
  array.copy_from(values);
  return array;
}

std::optional<DataBatch> BucketSentenceIter::next() {
  const InUse use = in_use("next");
  draw();
  if (position_ == batches_.size()) return std::nullopt;
  const auto [number, first] = batches_[position_++];
  const Bucket& bucket = buckets_[number];
  DataBatch batch{{array_of(bucket, first, false)}, {array_of(bucket, first, true)}};
  batch.bucket_key = key_of(bucket.length);
  batch.provide_data = {describe(options_.data_name, bucket.length)};
  batch.provide_label = {describe(options_.label_name, bucket.length)};
  return batch;
}

}  // namespace symbind
