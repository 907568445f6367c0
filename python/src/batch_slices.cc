#include "symbind/train/executor_group.h"

#include "bindings.h"

namespace symbind::python {

void bind_batch_slices(nb::module_& m) {
  m.def("_split_input_slice", [](int64_t batch_size, const std::vector<double>& work_load_list) {
    nb::list slices;
    for (const auto& [begin, end] : split_input_slice(batch_size, work_load_list))
      slices.append(nb::steal(PySlice_New(nb::int_(begin).ptr(), nb::int_(end).ptr(), nullptr)));
    return slices;
  });
}

}  // namespace symbind::python
