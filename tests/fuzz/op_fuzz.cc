// Operators on anything: called immediately, bound, and differentiated, on arrays that end where the process may not
// read or write any further. They finish or throw Error.
#include <cmath>
#include <cstring>
#include <memory>

#include <sys/mman.h>
#include <unistd.h>

#include "symbind/core/error.h"
#include "symbind/symbind.h"

#include "tests/fuzz/driver.h"
#include "tests/fuzz/random_call.h"

namespace symbind::fuzz {
namespace {

constexpr int64_t most_elements = 1 << 20;

// Memory between pages that may not be touched: its end is where one begins, or its beginning where one ends.
NDArray guarded(const Shape& shape, DType dtype, bool at_end) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t bytes = static_cast<size_t>(shape.size()) * size_of(dtype);
  const size_t inner = (std::max<size_t>(bytes, 1) + page - 1) / page * page, all = inner + 2 * page;
  void* mapped = ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("no memory for an input");
  const std::shared_ptr<void> owner(mapped, [all](void* data) { ::munmap(data, all); });
  auto* begin = static_cast<std::byte*>(mapped) + page;
  if (::mprotect(begin, inner, PROT_READ | PROT_WRITE) != 0) fail("more arrays than a process may have mappings");
  std::byte* data = at_end ? begin + inner - bytes : begin;
  auto storage = std::make_shared<Storage>(Device::get(cpu()), data, bytes, owner);
  return NDArray(std::move(storage), 0, shape, dtype);
}

std::vector<NDArray> inputs_of(const RandomCall& call, std::mt19937_64& dice) {
  std::vector<NDArray> inputs;
  for (size_t i = 0; i < call.shapes.size(); ++i) {
    if (call.shapes[i].size() > most_elements) fail("too large for this");
    inputs.push_back(guarded(call.shapes[i], call.types[i], dice() % 4 != 0));
    inputs.back().copy_from(random_values(dice, inputs.back().size()));
  }
  return inputs;
}

Symbol network_of(const RandomCall& call) {
  std::vector<Symbol> variables;
  for (size_t i = 0; i < call.shapes.size(); ++i) variables.push_back(Symbol::variable("v" + std::to_string(i)));
  const NameManager fresh;
  return apply(call.op->name, Inputs(variables), call.attributes);
}

// A few small inputs can ask for more memory or time than a case should take (a thousand repetitions along each axis).
void refuse_large_results(const RandomCall& call) {
  InferredShapes inferred;
  try {
    NamedShapes shapes;
    for (size_t i = 0; i < call.shapes.size(); ++i) shapes["v" + std::to_string(i)] = call.shapes[i];
    inferred = infer_shape(network_of(call), shapes);
  } catch (const Error&) {
    return;  // the call refuses it too, in its own way
  }
  for (const auto& output : inferred.outputs)
    if (Shape(output).size() > most_elements) fail("too large for this");
}

// Immediately: as it comes, and once more into arrays that are guarded too.
void call_immediately(const RandomCall& call) {
  std::mt19937_64 dice(call.values);
  const std::vector<NDArray> inputs = inputs_of(call, dice);
  InvokeOptions options;
  options.is_train = dice() % 2 == 0;
  const std::vector<NDArray> results = invoke(call.op->name, inputs, call.attributes, options);
  for (const NDArray& result : results) options.out.push_back(guarded(result.shape(), result.dtype(), true));
  invoke(call.op->name, inputs, call.attributes, options);
}

// Bound, with the gradients of everything.
void call_bound(const RandomCall& call) {
  std::mt19937_64 dice(call.values);
  const std::vector<NDArray> inputs = inputs_of(call, dice);
  const Symbol net = network_of(call);
  NamedArrays args, aux, grads;
  NamedArrays all;
  for (size_t i = 0; i < inputs.size(); ++i) all["v" + std::to_string(i)] = inputs[i];
  for (const std::string& name : net.list_arguments()) {
    if (!all.contains(name)) fail("an input is missing");
    args[name] = all[name];
    grads[name] = guarded(all[name].shape(), all[name].dtype(), true);
  }
  for (const std::string& name : net.list_auxiliary_states()) aux[name] = all[name];
  const ExecutorOptions options{.args_grad = grads,
                                .grad_req = dice() % 4 == 0 ? "add" : "write",
                                .aux_states = aux,
                                .options = {.fuse = dice() % 2 == 0}};
  const ExecutorPtr executor = bind(net, cpu(), args, options);
  executor->forward(false);
  executor->forward(true);
  std::vector<NDArray> out_grads;
  for (const NDArray& output : executor->outputs()) {
    out_grads.push_back(guarded(output.shape(), output.dtype(), true));
    out_grads.back().copy_from(random_values(dice, output.size()));
  }
  executor->backward(out_grads);
}

Outcome run(uint64_t number, std::ostream& description) {
  const RandomCall call = random_call(number / 2);
  description << call;
  try {
    refuse_large_results(call);
    number % 2 == 0 ? call_immediately(call) : call_bound(call);
    return Outcome::finished;
  } catch (const Error&) {
    return Outcome::refused;
  }
}

}  // namespace
}  // namespace symbind::fuzz

int main(int argc, char** argv) {
  return symbind::fuzz::main_of({.name = "op_fuzz", .run = symbind::fuzz::run}, argc, argv);
}
