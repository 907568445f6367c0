#include "symbind/backend/cpu/update.h"

#include <algorithm>

#include "symbind/backend/cpu/convert_array.h"

namespace symbind::cpu_backend {
namespace {

constexpr int64_t piece_length = 1024;
constexpr size_t most_states = 3;

struct alignas(64) Piece {
  std::byte bytes[piece_length * sizeof(double)];
};

std::byte* element(void* array, DType dtype, int64_t index) {
  return static_cast<std::byte*>(array) + static_cast<size_t>(index) * size_of(dtype);
}

// Work is divided at multiples of this many elements of an array: the last elements of a loop, which do not fill a
// vector, may be rounded differently, and the result must not depend on where threads start.
int64_t whole_blocks(int64_t elements) { return elements / update_block * update_block; }

// The addresses of one part.
struct Arrays {
  void* out;
  void* weight;
  void* grad;
  void* states[most_states + 1];  // the weight's float32 copy is the last
};

void run_straight(const UpdatePart& part, const Arrays& arrays, int64_t begin, int64_t end) {
  void* states[most_states];
  for (size_t k = 0; k < part.loop.states; ++k) states[k] = element(arrays.states[k], part.dtype, begin);
  part.loop.run(element(arrays.out, part.dtype, begin), element(arrays.weight, part.dtype, begin),
                element(arrays.grad, part.dtype, begin), states, end - begin);
}

// The float32 copy is updated, and the weight rounded from it.
void run_master(const UpdatePart& part, const Arrays& arrays, int64_t begin, int64_t end) {
  const DType type = part.loop.type;
  Piece grad;
  void* states[most_states];
  for (int64_t at = begin; at < end; at += piece_length) {
    const int64_t count = std::min(piece_length, end - at);
    convert_array(grad.bytes, type, element(arrays.grad, part.dtype, at), part.dtype, count);
    for (size_t k = 0; k < part.loop.states; ++k) states[k] = element(arrays.states[k], type, at);
    std::byte* const master = element(arrays.states[part.loop.states], type, at);
    part.loop.run(master, master, grad.bytes, states, count);
    convert_array(element(arrays.out, part.dtype, at), part.dtype, master, type, count);
  }
}

void run_converting(const UpdatePart& part, const Arrays& arrays, int64_t begin, int64_t end) {
  const DType type = part.loop.type;
  Piece weight, grad, kept[most_states];
  void* states[most_states];
  for (int64_t at = begin; at < end; at += piece_length) {
    const int64_t count = std::min(piece_length, end - at);
    convert_array(weight.bytes, type, element(arrays.weight, part.dtype, at), part.dtype, count);
    convert_array(grad.bytes, type, element(arrays.grad, part.dtype, at), part.dtype, count);
    for (size_t k = 0; k < part.loop.states; ++k) {
      convert_array(kept[k].bytes, type, element(arrays.states[k], part.dtype, at), part.dtype, count);
      states[k] = kept[k].bytes;
    }
    part.loop.run(weight.bytes, weight.bytes, grad.bytes, states, count);
    convert_array(element(arrays.out, part.dtype, at), part.dtype, weight.bytes, type, count);
    for (size_t k = 0; k < part.loop.states; ++k)
      convert_array(element(arrays.states[k], part.dtype, at), part.dtype, kept[k].bytes, type, count);
  }
}

void run_part(const UpdatePart& part, const Args& args, int64_t begin, int64_t end) {
  Arrays arrays{args.outputs[part.output], args.inputs[part.first_input], args.inputs[part.first_input + 1], {}};
  for (size_t k = 0; k < part.loop.states + (part.master ? 1 : 0); ++k)
    arrays.states[k] = args.inputs[part.first_input + 2 + k];
  if (part.master)
    run_master(part, arrays, begin, end);
  else if (part.dtype == part.loop.type)
    run_straight(part, arrays, begin, end);
  else
    run_converting(part, arrays, begin, end);
}

}  // namespace

void run_update(std::span<const UpdatePart> parts, const Args& args) {
  std::vector<int64_t> ends;  // of each part in the long row
  int64_t total = 0;
  for (const UpdatePart& part : parts) ends.push_back(total += part.count);
  parallel_for(total, element_grain, [&](int64_t begin, int64_t end) {
    auto i = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; ++i) {
      const int64_t start = ends[i] - parts[i].count, stop = std::min(end, ends[i]);
      const int64_t first = whole_blocks(begin - start),
                    last = stop < ends[i] ? whole_blocks(stop - start) : parts[i].count;
      if (first < last) run_part(parts[i], args, first, last);
      begin = stop;
    }
  });
}

std::vector<std::pair<int, int>> updated_in_place(std::span<const UpdatePart> parts) {
  std::vector<std::pair<int, int>> pairs;
  for (const UpdatePart& part : parts)
    pairs.emplace_back(static_cast<int>(part.first_input), static_cast<int>(part.output));
  return pairs;
}

std::unique_ptr<Kernel> build_update(std::vector<UpdatePart> parts) {
  KernelTraits traits{.in_place = updated_in_place(parts)};
  return make_kernel([parts = std::move(parts)](const Args& args) { run_update(parts, args); }, std::move(traits));
}

}  // namespace symbind::cpu_backend
