// A layer bound for prediction only: with grad_req "null" there are no gradients, and no memory for them.
#include <iostream>

#include "symbind/symbind.h"

#include "support/as_python.h"

using namespace symbind;

int main() {
  const Symbol x = Symbol::variable("x");
  const Symbol y = fully_connected(x, {.num_hidden = 4});
  const ExecutorPtr executor = simple_bind(y, cpu(), {{"x", {5, 4}}}, {.grad_req = "null"});

  std::cout << as_python(y.list_arguments()) << "\n";
  std::cout << as_python(executor->grad_arrays()) << "\n";
  std::cout << as_python(executor->arg_arrays()) << "\n";
  std::cout << as_python(executor->forward()) << "\n";
}
