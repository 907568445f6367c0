#include "symbind/backend/onednn/program.h"

#include <algorithm>

#include "symbind/core/log.h"
#include "symbind/core/openmp.h"
#include "symbind/core/parallel.h"

namespace symbind::onednn {
namespace {

constexpr size_t alignment = 64;

void warn_of_plain_kernels(const std::string& where, int status) {
  static std::once_flag once;
  std::call_once(once, [&] {
    log_warning(where, " oneDNN failed with status ", status,
                "; plain kernels are used instead, and are slower. Is there too little memory?");
  });
}

}  // namespace

int threads_for(int64_t work, int64_t worth_a_thread) {
  if (work < worth_a_thread) return 1;
  const ThreadScope without_workers({.threads = thread_policy().threads});
  return available_threads();
}

std::unique_ptr<Kernel> build_plain(const NodeView& node) { return last_resort(node.op, cpu()).build(node); }

std::unique_ptr<Kernel> Program::build(const NodeView& node, int threads,
                                       const std::function<void(Program&)>& assemble) {
  const ThreadScope scope({.threads = threads});
  auto program = std::make_unique<Program>(node.where(), threads);
  try {
    assemble(*program);
  } catch (const dnnl::error& error) {
    const auto is_plain = [](const Tensor& tensor) { return tensor.layout == Layout::plain; };
    require(std::ranges::all_of(node.inputs, is_plain) && std::ranges::all_of(node.outputs, is_plain), node.where(),
            " oneDNN ", error.what());
    warn_of_plain_kernels(node.where(), static_cast<int>(error.status));
    return build_plain(node);
  }
  return program;
}

std::string Program::refuse(const NodeView& node, int threads, const std::function<void(Program&)>& assemble) {
  const ThreadScope scope({.threads = threads});
  Program program(node.where(), threads);
  try {
    assemble(program);
  } catch (const ReferenceOnly&) {
    return "oneDNN has only its reference loops for this";
  } catch (const dnnl::error&) {
    return join("element type ", node.outputs[0].dtype, " on this processor");
  }
  return "";
}

Program::Array Program::add_array(From from, size_t index, const Desc& desc) {
  arrays_.push_back({from, index, dnnl::memory(desc, engine(), DNNL_MEMORY_NONE)});
  return {arrays_.size() - 1};
}

Program::Array Program::scratch(const Desc& desc) {
  const size_t offset = scratch_bytes;
  scratch_bytes += (desc.get_size() + alignment - 1) / alignment * alignment;
  return add_array(From::scratch, offset, desc);
}

Program::Array Program::cached(const Desc& desc) {
  const size_t offset = cached_bytes;
  cached_bytes += (desc.get_size() + alignment - 1) / alignment * alignment;
  return add_array(From::cached, offset, desc);
}

void Program::in_preparation(std::vector<int> from, const std::function<void()>& steps) {
  cached_from.insert(cached_from.end(), from.begin(), from.end());
  preparing_ = true;
  steps();
  preparing_ = false;
}

Program::Array Program::prepared(size_t index, const Desc& given, const Desc& wanted) {
  const Array as_given = input(index, given);
  if (given == wanted) return as_given;
  const Array result = cached(wanted);
  in_preparation({static_cast<int>(index)}, [&] { copy(as_given, result); });
  return result;
}

void Program::copy(Array from, Array to) {
  dnnl::memory& source = arrays_[from.number].memory;
  dnnl::memory& target = arrays_[to.number].memory;
  const dnnl::reorder::primitive_desc descriptor(source, target, attributes());
  execute(dnnl::reorder(descriptor), descriptor, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Program::Array Program::reordered(Array given, const Desc& wanted) {
  if (arrays_[given.number].memory.get_desc() == wanted) return given;
  const Array result = scratch(wanted);
  copy(given, result);
  return result;
}

Program::Array Program::writable(Array given, const Desc& wanted) {
  return arrays_[given.number].memory.get_desc() == wanted ? given : scratch(wanted);
}

void Program::finish(Array written, Array given) {
  if (written.number != given.number) copy(written, given);
}

void Program::execute(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& descriptor,
                      std::initializer_list<std::pair<int, Array>> arrays) {
  execute(primitive, descriptor, std::vector(arrays));
}

void Program::execute(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& descriptor,
                      const std::vector<std::pair<int, Array>>& arrays) {
  if (is_reference(descriptor)) throw ReferenceOnly(join(where_, " oneDNN has only its reference loops for this"));
  Step step{primitive, {}, {}};
  for (const auto& [argument, array] : arrays) step.arguments.push_back({argument, arrays_[array.number].memory.get()});
  const Desc scratchpad = descriptor.scratchpad_desc();
  if (scratchpad.get_size() > 0)
    step.arguments.push_back({DNNL_ARG_SCRATCHPAD, arrays_[scratch(scratchpad).number].memory.get()});
  (preparing_ ? preparation_ : steps_).push_back(std::move(step));
}

void Program::activate(Array array, const Eltwise& activation) {
  const Desc desc = arrays_[array.number].memory.get_desc();
  const dnnl::eltwise_forward::primitive_desc descriptor(engine(), dnnl::prop_kind::forward_inference,
                                                         activation.algorithm, desc, desc, activation.alpha, 0.0f,
                                                         attributes());
  execute(dnnl::eltwise_forward(descriptor), descriptor, {{DNNL_ARG_SRC, array}, {DNNL_ARG_DST, array}});
}

void Program::add(Array array, Array more) {
  const Desc desc = arrays_[array.number].memory.get_desc(), other = arrays_[more.number].memory.get_desc();
  const dnnl::binary::primitive_desc descriptor(engine(), dnnl::algorithm::binary_add, desc, other, desc, attributes());
  execute(dnnl::binary(descriptor), descriptor,
          {{DNNL_ARG_SRC_0, array}, {DNNL_ARG_SRC_1, more}, {DNNL_ARG_DST, array}});
}

void Program::call(std::function<void(const Args&)> step) {
  (preparing_ ? preparation_ : steps_).push_back({{}, {}, std::move(step)});
}

void* Program::address(const Binding& binding, const Args& args) const {
  switch (binding.from) {
    case From::input:
      return args.inputs[binding.index];
    case From::output:
      return args.outputs[binding.index];
    case From::cached:
      return static_cast<std::byte*>(args.cached) + binding.index;
    case From::scratch:
      break;
  }
  return static_cast<std::byte*>(args.scratch) + binding.index;
}

void Program::set_fallback(std::unique_ptr<Kernel> plain) {
  if (plain->cached_bytes > 0) return;  // it would need memory of another kind
  scratch_bytes = std::max(scratch_bytes, plain->scratch_bytes);
  fallback_ = std::move(plain);
}

void Program::run(const Args& args) {
  if (!fallback_) return run_steps(steps_, args);
  const dnnl_status_t status = try_steps(steps_, args);
  if (status == dnnl_success) return;
  warn_of_plain_kernels(where_, static_cast<int>(status));
  fallback_->run(args);
}

void Program::run_steps(const std::vector<Step>& steps, const Args& args) {
  const dnnl_status_t status = try_steps(steps, args);
  require(status == dnnl_success, where_, " oneDNN failed with status ", static_cast<int>(status));
}

dnnl_status_t Program::try_steps(const std::vector<Step>& steps, const Args& args) {
  const std::lock_guard lock(running_);
  const ThreadScope scope({.threads = threads_});
  require(threads_ == 1 || available_threads() == threads_, where_, " was built for ", threads_,
          " threads and cannot run inside a parallel loop or in a forked child: bind again "
          "there");
  if (threads_ > 1) openmp::separate_threads();
  dnnl_stream_t queue = nullptr;
  try {
    queue = stream().get();
  } catch (const dnnl::error& error) {  // the thread has no stream yet
    return error.status;
  }
  for (const Binding& binding : arrays_) dnnl_memory_set_data_handle(binding.memory.get(), address(binding, args));
  for (const Step& step : steps) {
    if (step.call) {
      step.call(args);
      continue;
    }
    const dnnl_status_t status = dnnl_primitive_execute(step.primitive.get(), queue,
                                                        static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success) return status;
  }
  return dnnl_success;
}

}  // namespace symbind::onednn
