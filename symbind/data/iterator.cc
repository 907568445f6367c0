#include "symbind/data/iterator.h"

#include <algorithm>

namespace symbind {

int DataDesc::get_batch_axis(const std::optional<std::string>& layout) {
  if (!layout) return 0;
  const size_t found = layout->find('N');
  return found == std::string::npos ? -1 : static_cast<int>(found);
}

int64_t DataIter::batch_size() const {
  const std::vector<DataDesc> inputs = provide_data();
  require(!inputs.empty(), "[DataIter] the batch size is that of the first input: there are no inputs");
  const DataDesc& first = inputs[0];
  const int axis = std::max(0, first.batch_axis());
  require(axis < first.shape.rank(), "[DataIter ", first.name, "] the layout ", first.layout,
          " has its batch on an axis that the shape does not have: ", first.shape);
  return first.shape[axis];
}

}  // namespace symbind
