#include "symbind/data/recordio.h"

#include <optional>

#include "bindings.h"
#include "convert.h"
#include "gil.h"

namespace symbind::python {
namespace {

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

nb::object read_record(RecordReader& reader) {
  std::string record;
  bool more = false;
  {
    const ReleaseGil release;
    more = reader.read(record);
  }
  return more ? nb::object(bytes_of(record)) : nb::none();
}

nb::object unpack(const nb::bytes& record) {
  const ImageRecord image = unpack_record(view_of(record));
  const RecordHeader& header = image.header;
  nb::object label = nb::cast(header.label);
  if (!header.labels.empty())
    label = numpy_module().attr("array")(nb::cast(header.labels), nb::arg("dtype") = "float32");
  return nb::make_tuple(header.labels.size(), label, header.id, header.id2, bytes_of(image.data));
}

}  // namespace

void bind_recordio(nb::module_& m) {
  nb::class_<RecordWriter>(m, "RecordWriter", "Writes a RecordIO file.")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def(
          "write", [](RecordWriter& self, const nb::bytes& record) { self.write(view_of(record)); }, nb::arg("record"))
      .def("tell", &RecordWriter::tell, "The offset of the next record.")
      .def("flush", &RecordWriter::flush)
      .def("close", &RecordWriter::close);
  nb::class_<RecordReader>(m, "RecordReader", "Reads a RecordIO file.")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def("read", &read_record, "The next record; None at the end.")
      .def("skip", &RecordReader::skip, "Steps over the next record; False at the end.")
      .def("tell", &RecordReader::tell, "The offset of the next record.")
      .def("seek", &RecordReader::seek, nb::arg("offset"));
  m.def(
      "read_record_index",
      [](const std::string& path) {
        nb::list pairs;
        for (const auto& [key, offset] : read_record_index(path)) pairs.append(nb::make_tuple(key, offset));
        return pairs;
      },
      nb::arg("path"), "The (key, offset) pairs of an index.");
  m.def(
      "pack_record",
      [](float label, std::vector<float> labels, uint64_t id, uint64_t id2, const nb::bytes& data) {
        return bytes_of(
            pack_record({.label = label, .labels = std::move(labels), .id = id, .id2 = id2}, view_of(data)));
      },
      nb::arg("label"), nb::arg("labels"), nb::arg("id"), nb::arg("id2"), nb::arg("data"));
  m.def("unpack_record", &unpack, nb::arg("record"), "(number of labels, label or labels, id, id2, data)");
}

}  // namespace symbind::python
