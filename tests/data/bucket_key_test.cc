#include "symbind/data/bucket_key.h"

#include <unordered_set>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind::testing {
namespace {

class Fraction : public BucketKey::Value {
 public:
  Fraction(int above, int below) : above_(above), below_(below) {}
  bool equals(const Value& other) const override {
    const auto* fraction = dynamic_cast<const Fraction*>(&other);
    return fraction && above_ * fraction->below_ == below_ * fraction->above_;
  }
  size_t hash() const override { return static_cast<size_t>(above_ / below_); }
  std::string str() const override { return std::to_string(above_) + "/" + std::to_string(below_); }

 private:
  int above_, below_;
};

TEST(BucketKey, IsANumberNumbersOrAText) {
  EXPECT_EQ(BucketKey(20).number(), 20);
  EXPECT_EQ(BucketKey{20}.number(), 20);
  EXPECT_EQ((BucketKey{10, 20}.numbers()), (BucketKey::Numbers{10, 20}));
  EXPECT_EQ(BucketKey("short").text(), "short");
  EXPECT_TRUE(BucketKey().empty());
  EXPECT_TRUE(BucketKey(std::shared_ptr<const BucketKey::Value>()).empty());
  EXPECT_FALSE(BucketKey(0).empty());
  EXPECT_TRUE(fails_with([] { BucketKey("short").number(); }, "short", "not a number"));
  EXPECT_TRUE(fails_with([] { BucketKey(3).text(); }, "3", "not a text"));
}

TEST(BucketKey, IsWrittenAsPythonWritesIt) {
  EXPECT_EQ(BucketKey(20).str(), "20");
  EXPECT_EQ((BucketKey{10, 20}.str()), "(10, 20)");
  EXPECT_EQ(BucketKey(BucketKey::Numbers{10}).str(), "(10,)");
  EXPECT_EQ(BucketKey("short").str(), "short");
}

TEST(BucketKey, KeysOfDifferentKindsAreDifferentKeys) {
  const auto half = [](int scale) { return BucketKey(std::make_shared<Fraction>(scale, 2 * scale)); };
  const std::unordered_set<BucketKey> keys = {20, "20", BucketKey::Numbers{20}, half(1), BucketKey()};
  EXPECT_EQ(keys.size(), 5u);
  EXPECT_TRUE(keys.contains(20));
  EXPECT_TRUE(keys.contains(half(3)));
  EXPECT_FALSE(keys.contains(21));
  EXPECT_EQ(half(1).str(), "1/2");
}

}  // namespace
}  // namespace symbind::testing
