// Steps of recurrent layers, for all devices: their order, and one element of a step of an LSTM, forward and backward,
// where gates are those after their activation.
#pragma once

#include <cstdint>
#include <limits>

#include "symbind/backend/vector_math.h"
#include "symbind/ops/rnn.h"

namespace symbind::rnn_step {

// The steps in the order of a direction, and the slots of states around one (RnnSize::Reserve).
struct StepOrder {
  int64_t steps;
  bool backwards;
  int64_t step(int64_t number) const { return backwards ? steps - 1 - number : number; }
  int64_t before(int64_t step) const { return backwards ? step + 1 : step; }
  int64_t after(int64_t step) const { return backwards ? step : step + 1; }
  int64_t first_slot() const { return backwards ? steps : 0; }
  int64_t last_slot() const { return backwards ? 0 : steps; }
};

// The limits of the cells; infinite if there are none.
template <class T>
struct CellLimits {
  T low, high;
  bool given, replaces_nan;

  constexpr T clip(T cell) const {
    const T above = replaces_nan ? (cell > low ? cell : low) : (cell < low ? low : cell);
    return above > high ? high : above;
  }
  // Does the gradient pass through the cell?
  constexpr bool inside(T cell) const { return cell > low && cell < high; }
};
template <class T>
CellLimits<T> limits_of(const RNN& p) {
  constexpr T all = std::numeric_limits<T>::infinity();
  return {static_cast<T>(p.lstm_state_clip_min.value_or(-all)), static_cast<T>(p.lstm_state_clip_max.value_or(all)),
          p.lstm_state_clip_min.has_value(), p.lstm_state_clip_nan};
}

// The cell after the step, before it is clipped.
template <class T>
constexpr T next_cell(T in, T forget, T change, T cell_before) {
  return forget * cell_before + in * change;
}
template <class T>
constexpr T next_state(T out, T cell) {
  return out * vector_math::tanh(cell);
}

// What the gradient of the state adds to that of the cell, and the gradient of the out gate before its activation.
template <class T>
struct GradsOfState {
  T cell, out;
};
template <class T>
constexpr GradsOfState<T> grads_of_state(T state_grad, T out, T tanh_of_cell) {
  const T through = state_grad * out;
  return {through * (T(1) - tanh_of_cell * tanh_of_cell), through * tanh_of_cell * (T(1) - out)};
}

// From the gradient of the cell, before it is clipped: of the other gates before activation, and of the cell before.
template <class T>
struct GradsOfCell {
  T in, forget, change, cell_before;
};
template <class T>
constexpr GradsOfCell<T> grads_of_cell(T cell_grad, T in, T forget, T change, T cell_before) {
  return {cell_grad * change * in * (T(1) - in), cell_grad * cell_before * forget * (T(1) - forget),
          cell_grad * in * (T(1) - change * change), cell_grad * forget};
}

}  // namespace symbind::rnn_step
