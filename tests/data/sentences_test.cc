#include "symbind/data/sentences.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "symbind/core/random.h"

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

using Sentences = std::vector<std::vector<int64_t>>;

const Sentences sentences{{1, 2, 3}, {4, 5}, {1, 2, 3, 4, 5, 6}, {7}, {1, 2}, {3, 4, 5}, {2, 2, 2, 2, 2, 2, 2, 2, 2}};

using Batches = std::vector<std::pair<std::vector<double>, std::vector<double>>>;

Batches epoch(BucketSentenceIter& iter) {
  Batches batches;
  while (const auto batch = iter.next())
    batches.emplace_back(batch->data[0].to_vector<double>(), batch->label[0].to_vector<double>());
  return batches;
}

TEST(Sentences, WordsAreNumberedInOrderOfAppearance) {
  const auto [numbers, vocabulary] = encode_sentences({{"a", "b", "c"}, {"b", "d"}});
  EXPECT_EQ(numbers, (Sentences{{0, 1, 2}, {1, 3}}));
  EXPECT_EQ(vocabulary, (Vocabulary{{"\n", -1}, {"a", 0}, {"b", 1}, {"c", 2}, {"d", 3}}));
  EXPECT_EQ(encode_sentences({{"a", "b", "c"}}, {}, {.invalid_label = 1}).sentences, (Sentences{{0, 2, 3}}));
}

TEST(Sentences, AWordThatIsNotInTheVocabularyFailsOrBecomesTheUnknownOne) {
  const Vocabulary vocabulary{{"a", 5}, {"b", 6}};
  EXPECT_TRUE(fails_with([&] { encode_sentences({{"a", "z"}}, vocabulary); }, "'z' is not in the vocabulary"));
  EXPECT_EQ(encode_sentences({{"a", "z"}}, vocabulary, {.unknown_token = "b"}).sentences, (Sentences{{5, 6}}));
  const auto encoded = encode_sentences({{"z", "y"}}, vocabulary, {.unknown_token = "?"});
  EXPECT_EQ(encoded.sentences, (Sentences{{7, 7}}));
  EXPECT_EQ(encoded.vocabulary.at("?"), 7);
}

TEST(Sentences, BatchesHoldSentencesOfABucketAndTheNextWords) {
  BucketSentenceIter iter(sentences, 2, {.buckets = {6, 3}});
  EXPECT_EQ(iter.buckets(), (std::vector<int64_t>{3, 6}));
  EXPECT_EQ(iter.discarded(), 1);
  EXPECT_EQ(iter.provide_data()[0], (DataDesc{"data", {2, 6}, DType::float32, "NT"}));
  EXPECT_EQ(iter.provide_label()[0].name, "softmax_label");
  EXPECT_EQ(iter.num_batches(), 2);
  const Batches batches = epoch(iter);
  ASSERT_EQ(batches.size(), 2u) << "five sentences of up to three words, one of six";
  std::set<std::vector<double>> seen;
  for (const auto& [data, label] : batches)
    for (size_t row = 0; row < 2; ++row) {
      const auto* const words = data.data() + row * 3;
      EXPECT_EQ(std::vector(label.begin() + row * 3, label.begin() + row * 3 + 3),
                (std::vector<double>{words[1], words[2], -1}));
      seen.insert({words, words + 3});
    }
  EXPECT_EQ(seen.size(), 4u) << "no sentence twice in an epoch";
  EXPECT_FALSE(iter.next()) << "the epoch stays over";
}

TEST(Sentences, TimeMayComeFirst) {
  BucketSentenceIter iter({{1, 2, 3}, {4, 5, 6}}, 2, {.layout = "TN"});
  EXPECT_EQ(iter.provide_data()[0].shape, (Shape{3, 2}));
  const auto data = iter.next()->data[0].to_vector<double>();
  const bool in_order = data[0] == 1;
  EXPECT_EQ(data, in_order ? (std::vector<double>{1, 4, 2, 5, 3, 6}) : (std::vector<double>{4, 1, 5, 2, 6, 3}));
}

TEST(Sentences, EpochsDifferAndRepeatWithTheSeed) {
  Sentences many;
  for (int64_t i = 0; i < 60; ++i) many.push_back({i, i, i});
  BucketSentenceIter iter(many, 4);
  seed(3);
  iter.reset();
  const Batches first = epoch(iter);
  iter.reset();
  EXPECT_NE(epoch(iter), first);
  seed(3);
  iter.reset();
  EXPECT_EQ(epoch(iter), first);
}

TEST(Sentences, MistakesAreExplained) {
  const auto made = [](const Sentences& given, BucketSentenceOptions options = {}, int64_t batch_size = 2) {
    return [=] { BucketSentenceIter(given, batch_size, options); };
  };
  EXPECT_TRUE(fails_with(made({{1, 2}}), "no length has 2 sentences"));
  EXPECT_TRUE(fails_with(made(sentences, {.layout = "TNC"}), "layout must be NT or TN"));
  EXPECT_TRUE(fails_with(made(sentences, {.buckets = {0, 3}}), "lengths above 0"));
  EXPECT_TRUE(fails_with(made(sentences, {}, 0), "batch_size must be above 0"));
}

}  // namespace
}  // namespace symbind::testing
