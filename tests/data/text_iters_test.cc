// CSVIter and LibSVMIter: what the recorded batches do not show.
#include <gtest/gtest.h>

#include "symbind/data/csv_iter.h"
#include "symbind/data/libsvm_iter.h"

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::TempDir;
using testing::write_file;
using Values = std::vector<double>;

class TextIters : public ::testing::Test {
 protected:
  template <class... Parts>
  ::testing::AssertionResult csv_refused(const std::string& text, const Parts&... parts) {
    write_file(path, text);
    return fails_with([this] { CSVIter iter({.data_csv = path, .data_shape = {3}}); }, parts...);
  }
  template <class... Parts>
  ::testing::AssertionResult libsvm_refused(const std::string& text, const Parts&... parts) {
    write_file(path, text);
    return fails_with([this] { LibSVMIter iter({.data_libsvm = path, .data_shape = {3}}); }, parts...);
  }

  TempDir dir;
  std::string path = dir.file("rows");
};

TEST_F(TextIters, ErrorsOfCSVNameTheLine) {
  EXPECT_TRUE(
      csv_refused("1,2,3\n4,5\n", path, "line 2", "expected as many numbers as the shape has elements, 3: found 2"));
  EXPECT_TRUE(csv_refused("1,2,3\n\n1,2,3,4\n", path, "line 3", "3: found 4"));
  EXPECT_TRUE(csv_refused("1,2,abc\n", path, "line 1", "expected a number: found 'abc'"));
  EXPECT_TRUE(csv_refused("1,2,3x\n", path, "line 1", "found '3x'"));
  EXPECT_TRUE(csv_refused("1,,3\n", path, "line 1", "no number in column 2"));
  EXPECT_TRUE(csv_refused("1 2 3\n", path, "line 1", "found '1 2 3'"));
  EXPECT_TRUE(csv_refused("1,2,3,,\n", path, "line 1", "no number in column 4"));
  EXPECT_TRUE(csv_refused("", path, "has no samples"));
  EXPECT_TRUE(csv_refused("\n\n", path, "has no samples"));
  write_file(path, "1.5,2,3\n");
  EXPECT_TRUE(fails_with([&] { CSVIter({.data_csv = path, .data_shape = {3}, .dtype = DType::int32}); }, "line 1",
                         "expected a whole number of the type: found '1.5'"));
  EXPECT_TRUE(fails_with([&] { CSVIter({.data_csv = path, .data_shape = {3}, .dtype = DType::float16}); }, "float16"));
  EXPECT_TRUE(fails_with([&] { CSVIter({.data_csv = dir.file("none"), .data_shape = {3}}); }, "none", "No such file"));
  EXPECT_TRUE(fails_with([&] { CSVIter({.data_csv = path, .data_shape = {3}, .batch_size = 0}); }, "batch_size"));
  EXPECT_TRUE(fails_with([&] { CSVIter({.data_csv = path, .data_shape = {0}}); }, "data_shape"));
  write_file(dir.file("label"), "1\n2\n");
  EXPECT_TRUE(fails_with([&] { CSVIter({.data_csv = path, .data_shape = {3}, .label_csv = dir.file("label")}); },
                         "as many labels as samples", "1 lines", "2"));
}

TEST_F(TextIters, ErrorsOfLibSVMNameTheLine) {
  EXPECT_TRUE(libsvm_refused("1 0:1\n1 5:2\n", path, "line 2", "between 0 and 2: 5"));
  EXPECT_TRUE(libsvm_refused("1 -1:2\n", path, "line 1", "between 0 and 2: -1"));
  EXPECT_TRUE(libsvm_refused("1 0:a\n", path, "line 1", "found 'a'"));
  EXPECT_TRUE(libsvm_refused("x 0:1\n", path, "line 1", "found 'x'"));
  EXPECT_TRUE(libsvm_refused("1 0:1 0:2\n", path, "line 1", "must increase along a line: 0 follows 0"));
  EXPECT_TRUE(libsvm_refused("1 1\n", path, "line 1", "expected index:value: found '1'"));
  EXPECT_TRUE(libsvm_refused("# nothing\n", path, "has no samples"));
}

TEST_F(TextIters, FilesOfManyBlocksAreReadInOrder) {
  constexpr int64_t rows = 400000;
  std::string text;
  for (int64_t i = 0; i < rows; ++i) text += join(i, ',', -i, i % 1000 ? "\n" : "\r\n\n", i == rows - 1 ? "" : " ");
  text.resize(text.size() + (size_t{1} << 25) - text.size() % (size_t{1} << 24), ' ');  // a last line of blanks
  write_file(path, text);
  CSVIter iter({.data_csv = path, .data_shape = {2}, .batch_size = rows, .dtype = DType::int64});
  ASSERT_EQ(iter.num_data(), rows);
  const auto values = iter.next()->data[0].to_vector<int64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    ASSERT_EQ(values[static_cast<size_t>(2 * i)], i);
    ASSERT_EQ(values[static_cast<size_t>(2 * i + 1)], -i);
  }
  // The line with a mistake is named, however far down it is.
  write_file(path, text + "\n\nx,1\n");
  EXPECT_TRUE(fails_with([&] { CSVIter({.data_csv = path, .data_shape = {2}}); }, join("line ", rows + 400 + 3)));
}

TEST_F(TextIters, AFolderIsReadFileByFile) {
  write_file(dir.file("a.csv"), "1\n2");
  write_file(dir.file("b.csv"), "3\n4\n");
  CSVIter iter({.data_csv = dir.file(""), .data_shape = {1}, .batch_size = 4});
  EXPECT_EQ(iter.next()->data[0].to_vector<double>(), (Values{1, 2, 3, 4}));
}

TEST_F(TextIters, EveryLineIsInOnePart) {
  write_file(path, "0\n1\n2\n3\n4\n5\n6\n");
  Values csv, libsvm;
  for (int64_t part = 0; part < 3; ++part) {
    CSVIter iter({.data_csv = path, .data_shape = {1}, .label_csv = path, .num_parts = 3, .part_index = part});
    LibSVMIter other({.data_libsvm = path, .data_shape = {1}, .num_parts = 3, .part_index = part});
    while (const auto batch = iter.next()) {
      csv.push_back(batch->data[0].to_vector<double>()[0]);
      EXPECT_EQ(batch->label[0].to_vector<double>()[0], csv.back());
      EXPECT_EQ(batch->index, (std::vector<int64_t>{static_cast<int64_t>(csv.back())}));
    }
    while (const auto batch = other.next()) libsvm.push_back(batch->label[0].to_vector<double>()[0]);
  }
  EXPECT_EQ(csv, (Values{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(libsvm, csv);
}

TEST_F(TextIters, WithoutRoundBatchEveryEpochBeginsAtTheFirstSample) {
  write_file(path, "0\n1\n2\n");
  CSVIter iter({.data_csv = path, .data_shape = {1}, .batch_size = 2, .round_batch = false});
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(iter.next()->data[0].to_vector<double>(), (Values{0, 1}));
    const auto last = iter.next();
    EXPECT_EQ(last->data[0].to_vector<double>()[0], 2);
    EXPECT_EQ(last->pad, 1);
    EXPECT_FALSE(iter.next());
    iter.reset();
  }
}

TEST_F(TextIters, ABatchMayBeLargerThanTheFile) {
  write_file(path, "0\n1\n2\n");
  CSVIter iter({.data_csv = path, .data_shape = {1}, .batch_size = 7});
  const auto batch = iter.next();
  EXPECT_EQ(batch->data[0].to_vector<double>(), (Values{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(batch->pad, 4);
  EXPECT_FALSE(iter.next());
}

}  // namespace
}  // namespace symbind
