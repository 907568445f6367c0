#include "symbind/core/parts.h"

#include <iterator>

#include "symbind/core/part_sources.h"

namespace symbind {

std::vector<Part> parts() {
  std::vector<Part> all = cpu_parts();
  all.push_back(onednn_part());
  for (std::vector<Part> some : {image_parts(), store_parts(), gpu_parts()})
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  return all;
}

}  // namespace symbind
