#include "symbind/data/recordio.h"

#include <gtest/gtest.h>

#include "tests/support/arrays.h"
#include "tests/support/temp_dir.h"

namespace symbind {
namespace {

using testing::fails_with;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

const std::string mark("\x0a\x23\xd7\xce", 4);

class RecordIO : public ::testing::Test {
 protected:
  void write(const std::vector<std::string>& records) {
    RecordWriter writer(path);
    for (const std::string& record : records) writer.write(record);
    writer.close();
  }
  std::vector<std::string> read() {
    RecordReader reader(path);
    std::vector<std::string> records;
    for (std::string record; reader.read(record);) records.push_back(record);
    return records;
  }

  TempDir dir;
  std::string path = dir.file("some.rec");
};

TEST_F(RecordIO, WhatWasWrittenIsRead) {
  const std::vector<std::string> records{"", "a", "ab", "abc", "abcd", std::string(100000, 'x'), std::string(3, '\0')};
  write(records);
  EXPECT_EQ(read(), records);
  EXPECT_EQ(read_file(path).size() % 4, 0U);
}

TEST_F(RecordIO, TheBytesAreThoseOfTheFormat) {
  write({"abcde"});
  EXPECT_EQ(read_file(path), mark + std::string("\x05\0\0\0abcde\0\0\0", 12));
}

TEST_F(RecordIO, RecordsThatHoldTheMarkComeBack) {
  const std::vector<std::string> records{mark,
                                         mark + mark,
                                         "abcd" + mark + "efgh",
                                         "abcd" + mark,
                                         mark + "abcd" + mark + mark + "ef",
                                         "abc" + mark + "d",  // not at a multiple of four: left as it is
                                         "plain"};
  write(records);
  EXPECT_EQ(read(), records);
  const std::string bytes = read_file(path);
  RecordReader reader(path);
  for (size_t i = 0; i < records.size(); ++i) ASSERT_TRUE(reader.skip());
  EXPECT_FALSE(reader.skip());
  EXPECT_EQ(reader.tell(), bytes.size());
}

TEST_F(RecordIO, ReadersReturnToWhatTellSaid) {
  RecordWriter writer(path);
  std::vector<uint64_t> offsets;
  for (int i = 0; i < 300; ++i) {
    offsets.push_back(writer.tell());
    writer.write(std::string(static_cast<size_t>(i * 7), static_cast<char>('a' + i % 26)));
  }
  writer.close();
  RecordReader reader(path);
  std::string record;
  for (const int i : {299, 0, 150, 151, 3}) {
    reader.seek(offsets[static_cast<size_t>(i)]);
    ASSERT_TRUE(reader.read(record));
    EXPECT_EQ(record, std::string(static_cast<size_t>(i * 7), static_cast<char>('a' + i % 26)));
  }
}

TEST_F(RecordIO, ADividedFileHasEveryRecordInOnePart) {
  std::vector<std::string> records;
  for (size_t i = 0; i < 200; ++i)
    records.push_back(std::to_string(i) + std::string(i * 13 % 4000, 'x') + (i % 5 ? "" : mark + mark));
  records.emplace_back(std::string(200000, 'y'));  // longer than what is searched in one go
  records.emplace_back("last");
  write(records);
  const uint64_t size = read_file(path).size();
  for (const uint64_t parts : {1U, 2U, 3U, 7U, 50U}) {
    std::vector<std::string> all;
    for (uint64_t part = 0; part < parts; ++part) {
      RecordReader reader(path);
      reader.seek_record_after(size * (part + 1) / parts);
      const uint64_t end = reader.tell();
      reader.seek_record_after(size * part / parts);
      for (std::string record; reader.tell() < end && reader.read(record);) all.push_back(record);
    }
    EXPECT_EQ(all, records) << parts << " parts";
  }
}

TEST_F(RecordIO, TruncatedFilesFailWithTheOffset) {
  write({"first", "abcd" + mark + "efgh"});
  const std::string whole = read_file(path);
  for (size_t length = 1; length < whole.size(); ++length) {
    write_file(path, whole.substr(0, length));
    if (length == 13 || length == 14 || length == 15 || length == 16) continue;  // only padding is missing, or nothing
    EXPECT_TRUE(fails_with([this] { read(); }, path, "at offset", "truncated")) << length;
  }
  write_file(path, whole.substr(0, 13));
  EXPECT_EQ(read(), std::vector<std::string>{"first"});
}

TEST_F(RecordIO, DamagedFilesFailWithTheOffset) {
  write({"first", "second", "abcd" + mark + "efgh"});
  const std::string whole = read_file(path);
  const auto refused = [&](size_t at, char byte, auto... parts) {
    std::string damaged = whole;
    damaged[at] = byte;
    write_file(path, damaged);
    return fails_with([this] { read(); }, path, parts...);
  };
  EXPECT_TRUE(refused(16, 'x', "at offset 16 expected the mark of a record"));
  EXPECT_TRUE(refused(23, '\x7f', "at offset 24 expected a part of 520093702 bytes"));
  EXPECT_TRUE(refused(23, '\xe0', "at offset 20 expected a kind of part from 0 to 3: found 7"));
  EXPECT_TRUE(refused(23, '\x40', "at offset 20 expected the first part of a record"));
  EXPECT_TRUE(refused(23, '\x20', "at offset 36 expected a later part of a record"));
}

TEST_F(RecordIO, AReaderStaysAtTheRecordItCouldNotRead) {
  write({"first", "second"});
  std::string damaged = read_file(path);
  damaged[16] = 'x';
  write_file(path, damaged);
  RecordReader reader(path);
  std::string record;
  ASSERT_TRUE(reader.read(record));
  EXPECT_TRUE(fails_with([&] { reader.read(record); }, "offset 16"));
  EXPECT_TRUE(fails_with([&] { reader.read(record); }, "offset 16"));
  EXPECT_EQ(reader.tell(), 16U);
}

TEST_F(RecordIO, FilesThatCannotBeOpenedAreNamed) {
  const std::string missing = dir.file("missing.rec"), nowhere = dir.file("no/folder.rec");
  EXPECT_TRUE(fails_with([&] { RecordReader reader(missing); }, missing, "No such file"));
  EXPECT_TRUE(fails_with([&] { RecordWriter writer(nowhere); }, nowhere, "cannot write"));
  EXPECT_TRUE(fails_with([&] { read_record_index(missing); }, missing, "No such file"));
}

TEST_F(RecordIO, AClosedWriterSaysSo) {
  RecordWriter writer(path);
  writer.write("a");
  writer.close();
  EXPECT_TRUE(fails_with([&] { writer.write("b"); }, path, "is closed"));
  EXPECT_TRUE(fails_with([&] { writer.close(); }, path, "is closed"));
}

TEST_F(RecordIO, IndicesAreReadAndWritten) {
  const std::vector<RecordPosition> positions{{3, 0}, {1, 16}, {-2, 1ULL << 40}};
  write_record_index(path, positions);
  EXPECT_EQ(read_file(path), "3\t0\n1\t16\n-2\t1099511627776\n");
  EXPECT_EQ(read_record_index(path), positions);
  write_file(path, "3\t0\r\n\n1\t16");
  EXPECT_EQ(read_record_index(path), (std::vector<RecordPosition>{{3, 0}, {1, 16}}));
  for (const std::string line : {"x", "1", "1\t", "1\t-3", "1 3", "1\t3x", "\t"}) {
    write_file(path, "3\t0\n" + line + "\n");
    EXPECT_TRUE(fails_with([&] { read_record_index(path); }, path, "line 2", "a key, a tab and an offset")) << line;
  }
}

TEST(RecordHeaders, OneLabelOrSeveralComeBack) {
  const std::string one = pack_record({.label = 4, .id = 7, .id2 = 9}, "jpeg");
  EXPECT_EQ(one.size(), 28U);
  const ImageRecord unpacked = unpack_record(one);
  EXPECT_EQ(unpacked.header.label, 4);
  EXPECT_TRUE(unpacked.header.labels.empty());
  EXPECT_EQ(unpacked.header.id, 7U);
  EXPECT_EQ(unpacked.header.id2, 9U);
  EXPECT_EQ(unpacked.data, "jpeg");

  const std::string several = pack_record({.labels = {1, 2.5}, .id = 1ULL << 60}, "jpeg");
  EXPECT_EQ(several.size(), 36U);
  EXPECT_EQ(unpack_record(several).header.labels, (std::vector<float>{1, 2.5}));
  EXPECT_EQ(unpack_record(several).header.id, 1ULL << 60);
  EXPECT_EQ(unpack_record(several).data, "jpeg");
}

TEST(RecordHeaders, ShortOnesAreRefused) {
  EXPECT_TRUE(fails_with([] { unpack_record("short"); }, "24 bytes", "5 bytes in all"));
  const std::string several = pack_record({.labels = {1, 2, 3}}, "");
  EXPECT_TRUE(fails_with([&] { unpack_record(several.substr(0, 30)); }, "promises 3 labels", "6 bytes follow"));
}

}  // namespace
}  // namespace symbind
