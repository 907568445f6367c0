// Batches of sentences, for symbind.rnn.io.
#include "symbind/data/sentences.h"

#include "bindings.h"
#include "convert.h"

namespace symbind::python {

void bind_sentences(nb::module_& m) {
  nb::class_<BucketSentenceIter>(m, "_BucketSentences")
      .def(
          "__init__",
          [](BucketSentenceIter* self, const std::vector<std::vector<int64_t>>& sentences, int64_t batch_size,
             std::vector<int64_t> buckets, int64_t invalid_label, DType dtype, std::string layout) {
            BucketSentenceOptions options;
            options.buckets = std::move(buckets);
            options.invalid_label = invalid_label;
            options.dtype = dtype;
            options.layout = std::move(layout);
            new (self) BucketSentenceIter(sentences, batch_size, std::move(options));
          },
          nb::arg("sentences"), nb::arg("batch_size"), nb::arg("buckets"), nb::arg("invalid_label"), nb::arg("dtype"),
          nb::arg("layout"))
      .def_prop_ro("buckets", &BucketSentenceIter::buckets)
      .def("reset", &BucketSentenceIter::reset)
      .def("next", [](BucketSentenceIter& self) -> nb::object {  // (data, label), or None at the end of an epoch
        const std::optional<DataBatch> batch = self.next();
        if (!batch) return nb::none();
        return nb::make_tuple(batch->data[0], batch->label[0]);
      });
}

}  // namespace symbind::python
