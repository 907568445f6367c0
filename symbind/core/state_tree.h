// The state that belongs to one parameter: nothing, an array, or a tuple of states.
#pragma once

#include <utility>
#include <vector>

#include "symbind/core/ndarray.h"

namespace SYMBIND_API symbind {

struct StateTree {
  NDArray array = {};
  std::vector<StateTree> tuple = {};
  bool is_tuple = false;
  bool is_list = false;  // a tuple whose items may be replaced; files do not distinguish it

  StateTree() = default;
  StateTree(NDArray only) : array(std::move(only)) {}
  static StateTree of(std::vector<StateTree> items) {
    StateTree tree;
    tree.tuple = std::move(items);
    tree.is_tuple = true;
    return tree;
  }
  bool empty() const { return !array && !is_tuple; }
};

}  // namespace symbind
