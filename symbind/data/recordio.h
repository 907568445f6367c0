// RecordIO, the container in which image sets for MXNet are stored: one file of records of any length, often
// accompanied by an index, a text file with a line "key<TAB>offset" per record. MXNet and Symbind read each other's
// files.
//
//     RecordWriter out("train.rec");
//     out.write(pack_record({.label = 3, .id = 7}, jpeg));
//     out.close();
//
//     RecordReader in("train.rec");
//     for (std::string record; in.read(record);) {
//       const ImageRecord image = unpack_record(record);  // image.header.label, image.data
//     }
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "symbind/core/api.h"

namespace SYMBIND_API symbind {

// A writer or a reader serves one thread at a time.
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path);  // replaces a file of that name
  ~RecordWriter();                                 // closes, but cannot report a failure: call close()
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;

  uint64_t tell() const;  // the offset of the next record
  void write(std::string_view record);
  void flush();  // writes buffered data to the file: readers see it
  void close();  // writes buffered data and closes; further calls fail

 private:
  class File;
  std::unique_ptr<File> file_;
};

class RecordReader {
 public:
  explicit RecordReader(const std::string& path);
  ~RecordReader();
  RecordReader(RecordReader&&) noexcept;
  RecordReader& operator=(RecordReader&&) noexcept;

  // The next record; false at the end of the file. A damaged or truncated file fails with its name, the offset, and
  // what was expected there; the position stays at the record that could not be read.
  bool read(std::string& record);
  // Steps over the next record without reading its data; false at the end.
  bool skip();
  uint64_t tell() const;       // the offset of the next record
  void seek(uint64_t offset);  // to an offset from tell() or an index
  // To the first record that begins at `offset` or after it, for readers that divide a file by its bytes.
  void seek_record_after(uint64_t offset);
  uint64_t size() const;  // of the file, in bytes

 private:
  class File;
  std::unique_ptr<File> file_;
};

struct RecordPosition {
  int64_t key = 0;
  uint64_t offset = 0;
  friend bool operator==(const RecordPosition&, const RecordPosition&) = default;
};

// The lines of an index, in the file's order. Fails with the file's name and the line.
std::vector<RecordPosition> read_record_index(const std::string& path);
void write_record_index(const std::string& path, const std::vector<RecordPosition>& positions);

// What precedes the data in a record made for images: a label, or `labels` if there is not exactly one; and two numbers
// that identify the record.
struct RecordHeader {
  float label = 0;
  std::vector<float> labels = {};  // if not empty, the record's labels; `label` is not used then
  uint64_t id = 0;
  uint64_t id2 = 0;
};

std::string pack_record(const RecordHeader& header, std::string_view data);

struct ImageRecord {
  RecordHeader header;
  std::string_view data;  // in the record's bytes
};

// Fails when the record is shorter than its header says.
ImageRecord unpack_record(std::string_view record);

}  // namespace symbind
