// A network without a Module: d = 2a + b, bound to arrays, run forwards and backwards.
#include <iostream>

#include "symbind/core/array_text.h"
#include "symbind/symbind.h"

#include "support/as_python.h"

using namespace symbind;

int main() {
  const Symbol a = Symbol::variable("a");
  const Symbol b = Symbol::variable("b");
  const Symbol d = 2 * a + b;
  std::cout << as_python(d.list_arguments()) << "\n";

  // From the shapes of a and b simple_bind finds all others, and makes every array.
  ExecutorPtr executor = simple_bind(d, cpu(), {{"a", {1}}, {"b", {1}}});
  executor->copy_params_from({{"a", array({1})}, {"b", array({2})}});
  std::cout << as_python(executor->forward(/*is_train=*/true)) << "\n";
  executor->backward(std::vector{array({1})});
  std::cout << as_python(executor->grad_arrays()) << "\n";

  // An executor that was given nothing holds zeros. Its arrays may be written at any time: the next forward sees it.
  executor = simple_bind(d, cpu(), {{"a", {1}}, {"b", {1}}});
  executor->forward();
  std::cout << values_text(executor->outputs()[0]) << "\n";
  for (NDArray value : executor->arg_arrays()) {  // a handle: the executor's own array
    std::cout << values_text(value) << "\n";
    value += array({1});
  }
  executor->forward();
  for (const NDArray& value : executor->outputs()) std::cout << values_text(value) << "\n";
}
