// The program of docs/serving.md, word for word below the line; predictor_test.cc runs it and compares the two.
#pragma once

#include <functional>
#include <optional>

// ----
#include "symbind/symbind.h"

using namespace symbind;

// Answers requests until there are no more; any number of threads may run it.
void serve(const Predictor& predict, std::function<std::optional<NDArray>()> next_request,
           std::function<void(const NDArray&)> answer) {
  while (const auto images = next_request()) answer(predict(*images)[0]);
}
