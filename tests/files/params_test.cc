#include "symbind/files/params.h"

#include <csignal>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::all_devices;
using testing::fails_with;
using testing::random_array;
using testing::read_file;
using testing::same_bits;
using testing::TempDir;
using testing::write_file;

// A file put together by hand.
class Bytes {
 public:
  template <class T>
  Bytes& put(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    text_.append(raw, sizeof value);
    return *this;
  }
  Bytes& header(uint64_t count) { return put<uint64_t>(0x112).put<uint64_t>(0).put<uint64_t>(count); }
  Bytes& array_header(std::initializer_list<int64_t> dims, uint32_t generation = 0xF993fac9, int32_t dtype = 0) {
    put<uint32_t>(generation).put<int32_t>(0).put<int32_t>(static_cast<int32_t>(dims.size()));
    for (const int64_t dim : dims) put<int64_t>(dim);
    return put<int32_t>(1).put<int32_t>(0).put<int32_t>(dtype);
  }
  Bytes& name(const std::string& name) {
    put<uint64_t>(name.size());
    text_ += name;
    return *this;
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

class Params : public ::testing::Test {
 protected:
  // Passes when a file of these bytes is refused, with its name and every part in the message.
  template <class... Parts>
  ::testing::AssertionResult refused(const std::string& bytes, const Parts&... parts) {
    write_file(path, bytes);
    return fails_with([this] { load(path); }, path, parts...);
  }

  TempDir dir;
  std::string path = dir.file("a.params");
};

TEST_F(Params, AreWrittenAsMXNetWritesThem) {
  save(path, {{"x", array({1, 2, 3}).reshape({1, 3})}, {"y", array({4}, cpu(), DType::int32)}});
  Bytes expected;
  expected.header(2).array_header({1, 3}).put(1.f).put(2.f).put(3.f);
  expected.array_header({1}, 0xF993fac9, 4).put<int32_t>(4);
  expected.put<uint64_t>(2).name("x").name("y");
  EXPECT_EQ(read_file(path), expected.str());
}

TEST_F(Params, AListHasNoNames) {
  save(path, std::vector<NDArray>{array({1, 2})});
  Bytes expected;
  expected.header(1).array_header({2}).put(1.f).put(2.f).put<uint64_t>(0);
  EXPECT_EQ(read_file(path), expected.str());
  const LoadedArrays loaded = load(path);
  EXPECT_TRUE(loaded.names.empty());
  ASSERT_EQ(loaded.arrays.size(), 1u);
  EXPECT_TRUE(fails_with([&] { loaded.dict(); }, "no names"));
}

TEST_F(Params, KeepTheOrderTheyAreGivenIn) {
  const std::vector<std::string> names{"b", "a"};
  save(path, names, std::vector<NDArray>{ones({1}), zeros({2})});
  const LoadedArrays loaded = load(path);
  EXPECT_EQ(loaded.names, names);
  EXPECT_EQ(loaded.arrays[1].shape(), Shape({2}));
  EXPECT_EQ(loaded.dict().at("b").item(), 1);
}

TEST_F(Params, EveryTypeAndShapeComesBackBitForBit) {
  std::vector<NDArray> arrays;
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::uint8, DType::int8,
                            DType::int32, DType::int64, DType::boolean})
    for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{2, 3, 1, 4}, Shape{0, 3}, Shape{1, 1, 1, 1, 1, 1, 1, 2}})
      arrays.push_back(random_array(shape, arrays.size(), 0, 1, dtype));
  save(path, arrays);
  const LoadedArrays loaded = load(path);
  ASSERT_EQ(loaded.arrays.size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) EXPECT_TRUE(same_bits(loaded.arrays[i], arrays[i])) << "array " << i;
}

TEST_F(Params, OneArrayWithoutAxesMakesAllOfTheGenerationThatHasThem) {
  const NDArray scalar = full(Shape::scalar(), 3), vector = ones({2});
  save(path, {scalar, vector});
  Bytes expected;
  expected.header(2).array_header({}, 0xF993faca).put(3.f);
  expected.array_header({2}, 0xF993faca).put(1.f).put(1.f).put<uint64_t>(0);
  EXPECT_EQ(read_file(path), expected.str());
  const LoadedArrays loaded = load(path);
  EXPECT_TRUE(same_bits(loaded.arrays[0], scalar));
  EXPECT_TRUE(same_bits(loaded.arrays[1], vector));
}

TEST_F(Params, ViewsAreSavedAlone) {
  const NDArray whole = arange(0, 6).reshape({3, 2});
  save(path, {whole.at(1)});
  EXPECT_TRUE(same_bits(load(path).arrays[0], array({2, 3})));
}

TEST_F(Params, ArraysSavedOnAnyDeviceLoadOnTheCpu) {
  for (const Context context : all_devices()) {
    save(path, {array({1, 2}, context)});
    EXPECT_EQ(load(path).arrays[0].context(), cpu());
    EXPECT_TRUE(same_bits(load(path).arrays[0], array({1, 2})));
  }
  Bytes on_gpu;  // whether or not there is a GPU here
  on_gpu.header(1).put<uint32_t>(0xF993fac9).put<int32_t>(0).put<int32_t>(1).put<int64_t>(1);
  on_gpu.put<int32_t>(2).put<int32_t>(5).put<int32_t>(0).put(7.f).put<uint64_t>(0);
  write_file(path, on_gpu.str());
  EXPECT_EQ(load(path).arrays[0].context(), cpu());
  EXPECT_EQ(load(path).arrays[0].item(), 7);
}

TEST_F(Params, AnArrayWithoutARankIsNoArray) {
  Bytes bytes;
  bytes.header(2).put<uint32_t>(0xF993fac9).put<int32_t>(0).put<int32_t>(0);
  bytes.array_header({1}).put(7.f).put<uint64_t>(0);
  write_file(path, bytes.str());
  const LoadedArrays loaded = load(path);
  EXPECT_FALSE(loaded.arrays[0]);
  EXPECT_EQ(loaded.arrays[1].item(), 7);
}

TEST_F(Params, AnyByteButZeroIsTrue) {
  Bytes bytes;
  bytes.header(1).array_header({3}, 0xF993fac9, 7).put<uint8_t>(0).put<uint8_t>(1).put<uint8_t>(200).put<uint64_t>(0);
  write_file(path, bytes.str());
  EXPECT_EQ(load(path).arrays[0].to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 1}));
}

TEST_F(Params, OfEqualNamesTheLastRemains) {
  Bytes bytes;
  bytes.header(2).array_header({1}).put(1.f).array_header({1}).put(2.f).put<uint64_t>(2).name("a").name("a");
  write_file(path, bytes.str());
  EXPECT_EQ(load(path).dict().at("a").item(), 2);
}

TEST_F(Params, AFileCutAnywhereIsRefusedWithAnOffset) {
  save(path, {{"weight", random_array({2, 3}, 1)}, {"bias", random_array({3}, 2, 0, 9, DType::int8)}});
  const std::string whole = read_file(path);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_TRUE(refused(whole.substr(0, length), "at offset ", "expected ", "found ")) << "cut to " << length;
  EXPECT_TRUE(refused(whole + "x", join("at offset ", whole.size(), " expected the end of the file")));
}

TEST_F(Params, AnyByteMayBeWrongWithoutHarm) {
  save(path, {{"weight", random_array({2, 3}, 1)}, {"bias", random_array({3}, 2)}});
  const std::string whole = read_file(path);
  for (size_t i = 0; i < whole.size(); ++i)
    for (const char wrong : {'\x00', '\x01', '\x7f', '\x80', '\xff'}) {
      std::string bytes = whole;
      bytes[i] = wrong;
      try {
        load_from_bytes(bytes);
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("at offset "), std::string::npos) << error.what();
      }
    }
}

TEST_F(Params, SizesThatTheFileCannotHoldTakeNoMemory) {
  constexpr int64_t huge = int64_t{1} << 40;
  EXPECT_TRUE(refused(Bytes().header(uint64_t{1} << 60).str(), "at offset 16", "the number of arrays"));
  EXPECT_TRUE(refused(Bytes().header(1).array_header({huge}).str(), "4398046511104 bytes", "(1099511627776"));
  EXPECT_TRUE(refused(Bytes().header(1).array_header({huge, huge}).str(), "at offset 32", "64 bits"));
  EXPECT_TRUE(refused(Bytes().header(1).array_header({0, huge, huge}).str(), "at offset 32", "64 bits"));
  EXPECT_TRUE(refused(Bytes().header(1).array_header({-1}).str(), "at offset 36", "at least 0: found -1"));
  EXPECT_TRUE(refused(Bytes().header(1).array_header({1, 1, 1, 1, 1, 1, 1, 1, 1}).str(), "a rank of at most 8"));
  Bytes long_name;
  long_name.header(1).array_header({1}).put(1.f).put<uint64_t>(1).put<uint64_t>(uint64_t{1} << 60);
  EXPECT_TRUE(refused(long_name.str(), "the length of a name"));
}

// ---- Older generations and sparse arrays

// After the header: V2, row_sparse, so many stored rows of an array of this shape, on the CPU, float32, int64 numbers.
Bytes row_sparse(std::initializer_list<int64_t> stored, std::initializer_list<int64_t> shape, int64_t numbers,
                 int32_t number_type = 6) {
  Bytes bytes;
  bytes.header(1).put<uint32_t>(0xF993fac9).put<int32_t>(1);
  for (const auto& dims : {stored, shape}) {
    bytes.put<int32_t>(static_cast<int32_t>(dims.size()));
    for (const int64_t dim : dims) bytes.put(dim);
  }
  return bytes.put<int32_t>(1).put<int32_t>(0).put<int32_t>(0).put(number_type).put<int32_t>(1).put(numbers);
}

// A csr array of 2×3 with two values.
Bytes csr_header(int64_t starts = 3, int64_t columns = 2, int64_t rows = 2) {
  Bytes bytes;
  bytes.header(1).put<uint32_t>(0xF993fac9).put<int32_t>(2).put<int32_t>(1).put<int64_t>(2);
  bytes.put<int32_t>(2).put(rows).put<int64_t>(3).put<int32_t>(1).put<int32_t>(0).put<int32_t>(0);
  return bytes.put<int32_t>(6).put<int32_t>(1).put(starts).put<int32_t>(6).put<int32_t>(1).put(columns);
}

TEST_F(Params, TheFirstGenerationHasItsRankInFrontAndShortDimensions) {
  Bytes bytes;
  bytes.header(2).put<uint32_t>(2).put<uint32_t>(1).put<uint32_t>(2);
  bytes.put<int32_t>(2).put<int32_t>(0).put<int32_t>(0).put(1.f).put(2.f);
  bytes.put<uint32_t>(0).put<uint64_t>(0);  // no array
  write_file(path, bytes.str());
  const LoadedArrays loaded = load(path);
  EXPECT_TRUE(same_bits(loaded.arrays[0], array({1, 2}).reshape({1, 2})));
  EXPECT_FALSE(loaded.arrays[1]);
  EXPECT_TRUE(refused(Bytes().header(1).put<uint32_t>(9).str(), "at offset 24", "a rank of at most 8", "9"));
  Bytes huge;
  huge.header(1).put<uint32_t>(1).put<uint32_t>(0xffffffff).put<int32_t>(1).put<int32_t>(0).put<int32_t>(0);
  EXPECT_TRUE(refused(huge.str(), "17179869180 bytes"));
}

TEST_F(Params, GenerationV1HasLongDimensions) {
  Bytes bytes;
  bytes.header(2).put<uint32_t>(0xF993fac8).put<int32_t>(1).put<int64_t>(2);
  bytes.put<int32_t>(1).put<int32_t>(0).put<int32_t>(4).put<int32_t>(-5).put<int32_t>(6);
  bytes.put<uint32_t>(0xF993fac8).put<int32_t>(0).put<uint64_t>(0);
  write_file(path, bytes.str());
  const LoadedArrays loaded = load(path);
  EXPECT_TRUE(same_bits(loaded.arrays[0], array({-5, 6}, cpu(), DType::int32)));
  EXPECT_FALSE(loaded.arrays[1]);
}

TEST_F(Params, SparseArraysBecomeDense) {
  const std::string rows = row_sparse({1, 2}, {3, 2}, 1).put(1.f).put(2.f).put<int64_t>(2).put<uint64_t>(0).str();
  write_file(path, rows);
  EXPECT_TRUE(same_bits(load(path).arrays[0], array({0, 0, 0, 0, 1, 2}).reshape({3, 2})));
  const std::string short_numbers =
      row_sparse({1, 2}, {3, 2}, 1, 4).put(1.f).put(2.f).put<int32_t>(0).put<uint64_t>(0).str();
  write_file(path, short_numbers);
  EXPECT_TRUE(same_bits(load(path).arrays[0], array({1, 2, 0, 0, 0, 0}).reshape({3, 2})));
  Bytes matrix = csr_header();
  matrix.put(5.f).put(6.f).put<int64_t>(0).put<int64_t>(1).put<int64_t>(2).put<int64_t>(2).put<int64_t>(0);
  write_file(path, matrix.put<uint64_t>(0).str());
  EXPECT_TRUE(same_bits(load(path).arrays[0], array({0, 0, 5, 6, 0, 0}).reshape({2, 3})));
}

TEST_F(Params, SparseArraysThatContradictThemselvesAreRefused) {
  EXPECT_TRUE(refused(row_sparse({1, 2}, {3, 2}, 1).put(1.f).put(2.f).put<int64_t>(3).put<uint64_t>(0).str(),
                      "a row number below 3: found 3"));
  EXPECT_TRUE(refused(row_sparse({1, 2}, {3, 2}, 1).put(1.f).put(2.f).put<int64_t>(-1).str(), "found -1"));
  EXPECT_TRUE(refused(row_sparse({1, 2}, {3, 4}, 1).str(), "the stored rows of a row_sparse array (3,4)", "(1,2)"));
  EXPECT_TRUE(refused(row_sparse({1, 2}, {3, 2}, 2).str(), "with (2,) row numbers"));
  EXPECT_TRUE(refused(row_sparse({1, 2}, {3, 2}, 1, 0).str(), "int32 or int64"));
  EXPECT_TRUE(refused(csr_header(2).str(), "as many row starts"));
  EXPECT_TRUE(refused(csr_header(3, 1).str(), "a column number for each of 2 values"));
  const auto with_index = [](std::initializer_list<int64_t> numbers) {
    Bytes bytes = csr_header();
    bytes.put(5.f).put(6.f);
    for (const int64_t number : numbers) bytes.put(number);
    return bytes.put<uint64_t>(0).str();
  };
  EXPECT_TRUE(refused(with_index({0, 3, 2, 0, 0}), "from 0 to 2", "found 3"));
  EXPECT_TRUE(refused(with_index({1, 1, 2, 0, 0}), "row starts from 0 to 2: found 1 to 2"));
  EXPECT_TRUE(refused(with_index({0, 1, 2, 0, 3}), "a column number below 3: found 3"));
  Bytes decreasing = csr_header(4, 2, 3);
  decreasing.put(5.f).put(6.f);
  for (const int64_t number : {0, 2, 1, 2, 0, 0}) decreasing.put(number);
  EXPECT_TRUE(refused(decreasing.put<uint64_t>(0).str(), "row starts that do not decrease: found 2 before 1"));
  Bytes unknown;
  unknown.header(1).put<uint32_t>(0xF993fac9).put<int32_t>(7);
  EXPECT_TRUE(refused(unknown.str(), "at offset 28", "a storage kind", "7"));
}

TEST_F(Params, AFewBytesDoNotBecomeAnArrayBeyondMeasure) {
  constexpr int64_t huge = int64_t{1} << 40;
  EXPECT_TRUE(refused(row_sparse({0, 2}, {huge, 2}, 0).put<uint64_t>(0).str(), "of a sane size", "(1099511627776,2)"));
}

TEST_F(Params, WhatBeginsNoArrayIsRefused) {
  EXPECT_TRUE(refused(Bytes().header(1).put<uint32_t>(0x12345678).str(), "at offset 24", "begins an array"));
  EXPECT_TRUE(refused(Bytes().header(1).array_header({1}, 0xF993fac9, 99).str(), "an element type", "99"));
}

TEST_F(Params, BytesInMemoryAreReadAlike) {
  save(path, {{"x", array({1, 2})}});
  const std::string bytes = read_file(path);
  EXPECT_TRUE(same_bits(load_from_bytes(bytes).dict().at("x"), array({1, 2})));
  EXPECT_TRUE(fails_with([&] { load_from_bytes(bytes.substr(0, 40), "a message"); }, "[a message] at offset "));
}

TEST_F(Params, AFullDiskIsAnError) {
  EXPECT_TRUE(fails_with([] { save("/dev/full", {ones({1000})}); }, "/dev/full", "No space left"));
}

TEST_F(Params, OtherFilesAreRefused) {
  EXPECT_TRUE(refused("{\"nodes\": [], \"arg_nodes\": []}", "at offset 0", "begins a file of arrays"));
  EXPECT_TRUE(refused("", "at offset 0"));
  EXPECT_TRUE(fails_with([] { load("/no/such/file.params"); }, "/no/such/file.params", "No such file"));
  const std::string folder = std::filesystem::path(path).parent_path();
  EXPECT_TRUE(fails_with([&] { load(folder); }, folder, "not a regular file"));
}

TEST_F(Params, AFailedSaveLeavesTheOldFile) {
  save(path, {ones({2})});
  const std::string old = read_file(path);
  EXPECT_TRUE(fails_with([&] { save(path, {zeros({2}), NDArray()}); }, path, "array 1", "there is no array"));
  EXPECT_TRUE(fails_with(
      [&] {
        save(path, std::vector<std::string>{"a"}, std::vector<NDArray>{ones({1}), ones({1})});
      },
      path, "1 names for 2 arrays"));
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files stands in for a full disk
  rlimit usual{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  rlimit tight = usual;
  tight.rlim_cur = 1 << 16;
  ::setrlimit(RLIMIT_FSIZE, &tight);
  EXPECT_TRUE(fails_with([&] { save(path, {zeros({1 << 20})}); }, path, "cannot write"));
  ::setrlimit(RLIMIT_FSIZE, &usual);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_file(path), old);
}

}  // namespace
}  // namespace symbind
