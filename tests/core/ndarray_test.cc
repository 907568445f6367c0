#include "symbind/core/ndarray.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/arrays.h"

namespace symbind {
namespace {

using testing::all_devices;
using testing::counted;
using testing::fails_with;
using testing::same_bits;
using Floats = std::vector<float>;
using Dims = std::vector<int64_t>;

TEST(NDArray, IsNothingByDefault) {
  const NDArray nothing;
  EXPECT_FALSE(nothing);
  EXPECT_THROW(nothing.context(), Error);
  EXPECT_THROW(nothing.to_vector<float>(), Error);
}

TEST(NDArray, SharesItsDataWithItsCopies) {
  NDArray a = zeros({2, 2});
  NDArray b = a;
  b.fill(5);
  EXPECT_EQ(a.to_vector<float>(), (Floats{5, 5, 5, 5}));
  EXPECT_TRUE(a.same_memory(b));
  EXPECT_FALSE(a.same_memory(a.copy()));
}

TEST(NDArray, IsCreatedOnEveryDeviceInEveryType) {
  for (const Context context : all_devices()) {
    for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8,
                              DType::int8, DType::int32, DType::int64, DType::boolean}) {
      SCOPED_TRACE(join(dtype, " on ", context));
      EXPECT_EQ(zeros({3}, context, dtype).to_vector<int64_t>(), (Dims{0, 0, 0}));
      EXPECT_EQ(ones({3}, context, dtype).to_vector<int64_t>(), (Dims{1, 1, 1}));
      const int64_t seven = dtype == DType::boolean ? 1 : 7;
      EXPECT_EQ(full({2}, 7, context, dtype).to_vector<int64_t>(), (Dims{seven, seven}));
      EXPECT_EQ(zeros({0, 3}, context, dtype).to_vector<int64_t>(), Dims{});
      EXPECT_EQ(zeros({3}, context, dtype).dtype(), dtype);
      EXPECT_EQ(zeros({3}, context, dtype).context(), context);
    }
  }
}

TEST(NDArray, TakesItsShapeFromNestedBraces) {
  EXPECT_EQ(array({1, 2, 3}).shape(), (Shape{3}));
  const NDArray matrix = array({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(matrix.shape(), (Shape{3, 2}));
  EXPECT_EQ(matrix.to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(array({{1}, {2}}).shape(), (Shape{2, 1}));
  EXPECT_EQ(array({{{1, 2}, {3, 4}}}).shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(array({{1, 2}}, cpu(), DType::int64).to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(fails_with([] { array({{1, 2}, {3}}); }, "rows must have one shape: (2,) and (1,)"));
}

TEST(NDArray, CountsWithArange) {
  EXPECT_EQ(arange(0, 5).to_vector<float>(), (Floats{0, 1, 2, 3, 4}));
  EXPECT_EQ(arange(1, 2, 0.25).to_vector<float>(), (Floats{1, 1.25, 1.5, 1.75}));
  EXPECT_EQ(arange(3, 0, -1).to_vector<float>(), (Floats{3, 2, 1}));
  EXPECT_EQ(arange(0, 2, 1, 2).to_vector<float>(), (Floats{0, 0, 1, 1}));
  EXPECT_EQ(arange(0, 3, 1, 1, cpu(), DType::int64).to_vector<int64_t>(), (Dims{0, 1, 2}));
  EXPECT_EQ(arange(3, 1).size(), 0);
  EXPECT_EQ(arange(1e308, -1e308).size(), 0) << "a difference beyond every number";
  EXPECT_THROW(arange(0, 1e14, 1, 1 << 30), Error);
}

// ---- views ---------------------------------------------------------------------------------------------------------

TEST(Views, OfTheFirstAxisShareMemory) {
  NDArray a = counted({4, 3});
  NDArray row = a.at(1), rows = a.slice(2, 4);
  EXPECT_EQ(row.shape(), (Shape{3}));
  EXPECT_EQ(row.to_vector<float>(), (Floats{4, 5, 6}));
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  EXPECT_EQ(rows.to_vector<float>(), (Floats{7, 8, 9, 10, 11, 12}));
  row.fill(0);
  EXPECT_EQ(a.to_vector<float>(), (Floats{1, 2, 3, 0, 0, 0, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(rows.at(1).at(2).item(), 12);
}

TEST(Views, CountFromTheEndWithNegativeNumbers) {
  const NDArray a = counted({4});
  EXPECT_EQ(a.at(-1).item(), 4);
  EXPECT_EQ(a.slice(-2, 4).to_vector<float>(), (Floats{3, 4}));
}

TEST(Views, OutsideOfAnArrayAreErrors) {
  const NDArray a = counted({4, 3});
  EXPECT_TRUE(fails_with([&] { a.at(4); }, "index 4", "length 4"));
  EXPECT_THROW(a.at(-5), Error);
  EXPECT_THROW(a.slice(3, 9), Error);
  EXPECT_THROW(a.slice(3, 1), Error);
}

TEST(Views, MayBeEmpty) {
  const NDArray a = counted({4, 3});
  EXPECT_EQ(a.slice(2, 2).shape(), (Shape{0, 3}));
  EXPECT_EQ(a.slice(2, 2).size(), 0);
}

TEST(Views, OfAPrefixNeedNoMoreBytes) {
  NDArray a = counted({4, 3});
  const NDArray part = a.prefix({2, 2}, DType::float32);
  EXPECT_TRUE(part.same_memory(a));
  EXPECT_EQ(part.to_vector<float>(), (Floats{1, 2, 3, 4}));
  EXPECT_NO_THROW(a.prefix({6}, DType::float64));
  EXPECT_TRUE(fails_with([&] { a.prefix({7}, DType::float64); }, "(7,)", "48"));
}

struct ReshapeCase {
  Dims from, codes, to;
};

// The pairs of MXNet's own documentation.
TEST(Reshape, KnowsEveryCode) {
  const ReshapeCase cases[] = {
      {{2, 3, 4}, {4, 0, 2}, {4, 3, 2}},
      {{2, 3, 4}, {2, 0, 0}, {2, 3, 4}},
      {{2, 3, 4}, {6, 1, -1}, {6, 1, 4}},
      {{2, 3, 4}, {3, -1, 8}, {3, 1, 8}},
      {{2, 3, 4}, {-1}, {24}},
      {{2, 3, 4}, {-2}, {2, 3, 4}},
      {{2, 3, 4}, {2, -2}, {2, 3, 4}},
      {{2, 3, 4}, {-2, 1, 1}, {2, 3, 4, 1, 1}},
      {{2, 3, 4}, {-3, 4}, {6, 4}},
      {{2, 3, 4, 5}, {-3, -3}, {6, 20}},
      {{2, 3, 4}, {0, -3}, {2, 12}},
      {{2, 3, 4}, {-3, -2}, {6, 4}},
      {{2, 3, 4}, {-4, 1, 2, -2}, {1, 2, 3, 4}},
      {{2, 3, 4}, {2, -4, -1, 3, -2}, {2, 1, 3, 4}},
  };
  for (const ReshapeCase& each : cases) {
    const NDArray a = counted(Shape(each.from));
    const NDArray b = a.reshape(each.codes);
    EXPECT_EQ(b.shape(), Shape(each.to)) << comma_separated(each.codes);
    EXPECT_TRUE(b.same_memory(a));
  }
}

TEST(Reshape, ReadsFromTheRightWhenReversed) {
  EXPECT_EQ(resolve_reshape(Shape{10, 5, 4}, Dims{-1, 0}, false, ""), (Shape{40, 5}));
  EXPECT_EQ(resolve_reshape(Shape{10, 5, 4}, Dims{-1, 0}, true, ""), (Shape{50, 4}));
}

TEST(Reshape, ThatDoesNotFitIsAnError) {
  const NDArray a = counted({2, 3, 4});
  EXPECT_TRUE(fails_with([&] { a.reshape({5, 5}); }, "(2,3,4)", "(5, 5)"));
  EXPECT_THROW(a.reshape({-1, -1}), Error);
  EXPECT_THROW(a.reshape({-1, 7}), Error);
  EXPECT_THROW(a.reshape({0, 0, 0, 0}), Error);
  EXPECT_THROW(a.reshape({-4, 3, 3, -2}), Error);
  EXPECT_THROW(a.reshape({-4, 2}), Error);
  EXPECT_THROW(a.reshape({-2, -3}), Error);
  EXPECT_THROW(a.reshape({-5, 2}), Error);
}

TEST(Reshape, ToSizesThatCannotBeCountedIsAnError) {
  const NDArray a = counted({2, 3, 4});
  const int64_t large = int64_t{1} << 62;
  EXPECT_THROW(a.reshape({-4, large, large, -2}), Error);
  EXPECT_THROW(a.reshape({large, large, -1}), Error);
  EXPECT_THROW(a.reshape({large, large}), Error);
  EXPECT_THROW(NDArray(a.storage_ptr(), SIZE_MAX - 7, {4}, DType::float32), Error);
}

// ---- copies and conversions ----------------------------------------------------------------------------------------

TEST(Astype, RoundsAndCutsAsC) {
  const NDArray a = array({-1.7, -0.2, 0.5, 1.5, 2.9});
  EXPECT_EQ(a.astype(DType::int32).to_vector<int32_t>(), (std::vector<int32_t>{-1, 0, 0, 1, 2}));
  EXPECT_EQ(a.astype(DType::boolean).to_vector<int32_t>(), (std::vector<int32_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(a.astype(DType::float64).dtype(), DType::float64);
  EXPECT_FALSE(a.astype(DType::float32).same_memory(a));
}

TEST(Astype, KeepsWholeNumbersBetweenAllTypes) {
  const DType types[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                         DType::uint8,   DType::int8,    DType::int32,   DType::int64};
  for (const Context context : all_devices()) {
    const NDArray original = array(Dims{0, 1, 5, 100, 127}, {5}, context, DType::int64);
    for (const DType from : types)
      for (const DType to : types)
        EXPECT_EQ(original.astype(from).astype(to).to_vector<int64_t>(), original.to_vector<int64_t>())
            << from << " to " << to << " on " << context;
  }
}

TEST(Astype, KeepsLargeInt64Exactly) {
  const Dims large{(int64_t{1} << 53) + 1, -(int64_t{1} << 60) - 3};
  EXPECT_EQ(array(large, {2}, cpu(), DType::int64).to_vector<int64_t>(), large);
}

TEST(Astype, KeepsInfinityAndNaN) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float64}) {
    const auto values = array({infinity, -infinity, NAN}).astype(dtype).to_vector<double>();
    EXPECT_EQ(values[0], infinity);
    EXPECT_EQ(values[1], -infinity);
    EXPECT_TRUE(std::isnan(values[2]));
  }
}

TEST(Copyto, ConvertsTheTypeAndChecksTheShape) {
  const NDArray a = counted({2, 3});
  NDArray half = zeros({2, 3}, cpu(), DType::float16), other = zeros({3, 2});
  a.copyto(half);
  EXPECT_EQ(half.to_vector<float>(), a.to_vector<float>());
  EXPECT_TRUE(fails_with([&] { a.copyto(other); }, "(2,3)", "(3,2)"));
}

TEST(Copyto, WritesIntoViewsOnly) {
  NDArray a = zeros({3, 2});
  NDArray middle = a.at(1);
  counted({2}).copyto(middle);
  EXPECT_EQ(a.to_vector<float>(), (Floats{0, 0, 1, 2, 0, 0}));
}

TEST(Copyto, TakesOverlappingViews) {
  NDArray a = counted({6});
  NDArray shifted = a.slice(1, 6);
  a.slice(0, 5).copyto(shifted);
  EXPECT_EQ(a.to_vector<float>(), (Floats{1, 1, 2, 3, 4, 5}));
}

TEST(Copies, StayWhereTheyAreIfTheyCan) {
  const NDArray a = counted({3});
  EXPECT_TRUE(a.as_in_context(cpu(0)).same_memory(a));
  const NDArray b = a.as_in_context(cpu(1));
  EXPECT_FALSE(b.same_memory(a));
  EXPECT_EQ(b.context(), cpu(1));
  EXPECT_TRUE(same_bits(b, a));
}

TEST(CopyFrom, RefusesAnotherNumberOfValues) {
  NDArray a = zeros({2, 3});
  EXPECT_TRUE(fails_with([&] { a.copy_from(Floats{1, 2, 3}); }, "3", "6"));
}

TEST(Item, IsForOneElementOnly) {
  EXPECT_EQ(array({2.5}).item(), 2.5);
  EXPECT_EQ(full({1, 1}, 3).item(), 3);
  EXPECT_THROW(zeros({2}).item(), Error);
  EXPECT_THROW(zeros({0}).item(), Error);
}

TEST(Elements, AreReadAndWrittenByTheirIndices) {
  for (const Context context : all_devices()) {
    const NDArray a = arange(0, 6, 1, 1, context).reshape({2, 3});
    EXPECT_EQ(a(1, 2), 5);
    EXPECT_EQ(a(-1, -3), 3);
    a(0, 1) = 0.5;
    a(1, 1) += 10;
    a(1, 0) = a(1, 2);
    const float read = static_cast<float>(a(0, 1));
    EXPECT_EQ(read, 0.5f);
    EXPECT_EQ(a.to_vector<float>(), (Floats{0, 0.5, 2, 5, 14, 5}));
    a.at(1)(2) /= 2;  // through a view
    EXPECT_EQ(a(1, 2), 2.5);
  }
  const NDArray scalar = full(Shape::of_rank(0, 0), 7);
  EXPECT_EQ(scalar(), 7);
}

TEST(Elements, AreOfTheArraysType) {
  const NDArray large = array(std::vector<int64_t>{(int64_t{1} << 60) + 1}, {1}, cpu(), DType::int64);
  EXPECT_EQ(large(0).as<int64_t>(), (int64_t{1} << 60) + 1);
  const NDArray bytes = zeros({2}, cpu(), DType::uint8);
  bytes(1) = 3.75;
  EXPECT_EQ(bytes(1), 3);
}

TEST(Elements, OutsideOfAnArrayAreErrors) {
  const NDArray a = zeros({2, 3});
  EXPECT_TRUE(fails_with([&] { (void)a(0, 3); }, "index 3", "axis 1", "(2,3)"));
  EXPECT_TRUE(fails_with([&] { a(-3, 0) = 1; }, "index -3", "axis 0", "(2,3)"));
  EXPECT_TRUE(fails_with([&] { (void)a(1); }, "1 index", "(2,3)"));
  EXPECT_TRUE(fails_with([&] { (void)a(1, 1, 1); }, "3 indices", "(2,3)"));
  EXPECT_TRUE(fails_with([] { (void)NDArray()(0); }, "empty"));
}

TEST(FromBlob, SharesTheCallersMemory) {
  Floats values{0, 1, 2, 3, 4, 5};
  {
    const NDArray a = NDArray::from_blob(values.data(), {2, 3});
    EXPECT_EQ(a.dtype(), DType::float32);
    EXPECT_EQ(a(1, 0), 3);
    values[3] = 30;
    EXPECT_EQ(a(1, 0), 30);
    a.fill(7);
    EXPECT_TRUE(a.storage().exported()) << "nothing may be cached from memory that changes unseen";
  }
  EXPECT_EQ(values, Floats(6, 7));
}

TEST(FromBlob, KeepsItsOwnerOrCallsItsDeleter) {
  const auto owner = std::make_shared<std::vector<double>>(4, 1.5);
  int deleted = 0;
  {
    const NDArray view = NDArray::from_blob(owner->data(), {4}, DType::float64, owner).slice(1, 3);
    EXPECT_EQ(owner.use_count(), 2);
    EXPECT_EQ(view.to_vector<double>(), (std::vector<double>{1.5, 1.5}));
    const auto counted_delete = [&](int* memory) {
      ++deleted;
      delete[] memory;
    };
    const NDArray b = NDArray::from_blob(new int[3]{1, 2, 3}, {3}, counted_delete);
    EXPECT_EQ(b.dtype(), DType::int32);
    EXPECT_EQ(b(2), 3);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(deleted, 1);
}

TEST(FromBlob, ChecksAddressAndShape) {
  alignas(8) char bytes[16] = {};
  EXPECT_TRUE(fails_with([&] { NDArray::from_blob(bytes + 1, {2}, DType::float32); }, "multiple of 4"));
  EXPECT_TRUE(fails_with([] { NDArray::from_blob(nullptr, {2}, DType::float32); }, "null", "8 bytes"));
  EXPECT_TRUE(fails_with([&] { NDArray::from_blob(bytes, Shape{}, DType::float32); }, "known"));
  EXPECT_EQ(NDArray::from_blob(nullptr, {0}, DType::float32).size(), 0);
}

TEST(Concatenate, ConcatenatesAlongAnyAxis) {
  const NDArray a = counted({2, 2}), b = full({2, 1}, 9), c = full({1, 2}, 7);
  const std::vector<NDArray> wide{a, b}, tall{a, c};
  EXPECT_EQ(concatenate(wide, 1).to_vector<float>(), (Floats{1, 2, 9, 3, 4, 9}));
  EXPECT_EQ(concatenate(tall, 0).to_vector<float>(), (Floats{1, 2, 3, 4, 7, 7}));
  EXPECT_EQ(concatenate(wide, -1).shape(), (Shape{2, 3}));
  EXPECT_THROW(concatenate(wide, 0), Error);
  EXPECT_THROW(concatenate(std::vector<NDArray>{}, 0), Error);
}

TEST(NDArray, PrintsValuesShapeAndContext) {
  const std::string text = counted({2, 3}).str();
  EXPECT_NE(text.find("<NDArray 2x3 @cpu(0)>"), std::string::npos) << text;
  EXPECT_NE(text.find('6'), std::string::npos) << text;
}

TEST(NamedArrays, AnUnknownNameIsAnErrorWithNearNames) {
  const NamedArrays arrays{{"fc1_weight", zeros({2})}, {"fc1_bias", zeros({1})}};
  EXPECT_EQ(arrays.at("fc1_bias").shape(), (Shape{1}));
  EXPECT_TRUE(fails_with([&] { arrays.at("fc1_wieght"); }, "fc1_wieght", "did you mean", "fc1_weight"));
  EXPECT_TRUE(fails_with([&] { arrays.at("data"); }, "data", "there are fc1_bias, fc1_weight"));
  EXPECT_TRUE(fails_with([] { NamedArrays().at("data"); }, "data"));
}

}  // namespace
}  // namespace symbind
