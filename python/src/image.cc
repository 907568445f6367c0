#include "symbind/data/image.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {
namespace {

// bytes, or anything with a buffer of bytes.
class Bytes {
 public:
  explicit Bytes(nb::handle value) {
    if (PyObject_GetBuffer(value.ptr(), &buffer_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&buffer_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::string_view view() const { return {static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len)}; }

 private:
  Py_buffer buffer_{};
};

}  // namespace

void bind_image(nb::module_& m) {
  m.def(
      "imdecode",
      [](nb::handle bytes, int flag, bool to_rgb) {
        const Bytes held(bytes);
        const ReleaseGil release;
        return imdecode(held.view(), {.flag = flag, .to_rgb = to_rgb});
      },
      nb::arg("buf"), nb::arg("flag") = 1, nb::arg("to_rgb") = true, "An image from the bytes of a JPEG or PNG.");
  m.def(
      "imread",
      [](const std::string& path, int flag, bool to_rgb) { return imread(path, {.flag = flag, .to_rgb = to_rgb}); },
      nb::arg("filename"), nb::arg("flag") = 1, nb::arg("to_rgb") = true, nb::call_guard<ReleaseGil>());
  m.def(
      "imencode",
      [](const NDArray& image, const std::string& format, int quality, bool rgb) {
        std::string bytes;
        {
          const ReleaseGil release;
          bytes = imencode(image, format, quality, rgb);
        }
        return nb::bytes(bytes.data(), bytes.size());
      },
      nb::arg("image"), nb::arg("format") = ".jpg", nb::arg("quality") = 95, nb::arg("rgb") = true,
      "The bytes of a JPEG or PNG.");
  m.def("imresize", &imresize, nb::arg("src"), nb::arg("w"), nb::arg("h"), nb::arg("interp") = 1,
        nb::call_guard<ReleaseGil>());
  m.def("imcrop", &imcrop, nb::arg("src"), nb::arg("x0"), nb::arg("y0"), nb::arg("w"), nb::arg("h"));
  m.def("imflip", &imflip, nb::arg("src"));
  m.def(
      "copy_make_border",
      [](const NDArray& image, int64_t top, int64_t bottom, int64_t left, int64_t right, int type,
         const std::vector<double>& values) {
        return copy_make_border(image, top, bottom, left, right, static_cast<Border>(type), values);
      },
      nb::arg("src"), nb::arg("top"), nb::arg("bot"), nb::arg("left"), nb::arg("right"), nb::arg("type") = 0,
      nb::arg("values"));
}

}  // namespace symbind::python
