// CTCLoss: the code shared by all devices. A sequence of k labels has 2k + 1 states: a blank, the first label, a blank,
// the second label, …, a blank. A path starts in one of the first two states, ends in one of the last two, and from
// step to step stays in its state, goes to the next, or skips a blank between two different labels. Probabilities of
// paths are logarithms in double, so that they neither underflow nor lose digits over many steps; exp and log are
// computed in the type C of the operator, of differences that are small.
#pragma once

#include <cstdint>

#include "symbind/backend/freestanding.h"
#include "symbind/backend/vector_math.h"

namespace symbind::ctc {

constexpr double impossible = -freestanding::infinity<double>();

struct Size {
  int64_t steps, batch, classes, longest;  // longest: the labels that a sequence may have
  bool blank_first;

  constexpr int64_t states() const { return 2 * longest + 1; }
  constexpr int64_t blank() const { return blank_first ? 0 : classes - 1; }
  constexpr bool is_label(int64_t number) const {
    return blank_first ? number > 0 && number < classes : number >= 0 && number < classes - 1;
  }
  constexpr bool is_padding(int64_t number) const { return blank_first ? number == 0 : number < 0; }
  // The offset of the scores of a step.
  constexpr int64_t row(int64_t step, int64_t sequence) const { return (step * batch + sequence) * classes; }
};

// How many labels there are before the padding.
constexpr int64_t count_labels(const Size& size, const int64_t* labels) {
  int64_t count = 0;
  while (count < size.longest && !size.is_padding(labels[count])) ++count;
  return count;
}

// The class of a state, and whether a path may reach it from two states before.
struct States {
  const int64_t* labels;
  int64_t blank;

  constexpr int64_t class_of(int64_t state) const { return state % 2 == 0 ? blank : labels[state / 2]; }
  constexpr bool skips(int64_t state) const {
    return state % 2 == 1 && state >= 3 && labels[state / 2] != labels[state / 2 - 1];
  }
};

// log(eᵃ + eᵇ + eᶜ)
template <class C>
constexpr double log_sum(double a, double b, double c) {
  const double larger = a > b ? a : b, largest = c > larger ? c : larger;
  const double base = largest > impossible ? largest : 0.0;  // all are impossible, or one is NaN
  return base + static_cast<double>(vector_math::log(vector_math::exp(static_cast<C>(a - base)) +
                                                     vector_math::exp(static_cast<C>(b - base)) +
                                                     vector_math::exp(static_cast<C>(c - base))));
}

// e^x of a difference of logarithms
template <class C>
constexpr C probability(double x) {
  return vector_math::exp(static_cast<C>(x));
}

}  // namespace symbind::ctc
