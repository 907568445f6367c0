// Creates executors: from arrays of the caller, from some shapes, or from another executor for other shapes.
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "symbind/core/error.h"
#include "symbind/exec/executor.h"
#include "symbind/exec/executor_impl.h"
#include "symbind/passes/infer_graph.h"
#include "symbind/passes/passes.h"

namespace symbind {

class ExecutorBuilder {
 public:
  ExecutorBuilder(const Symbol& symbol, Context context, const std::map<std::string, Context>& group2ctx,
                  const CompileOptions& options)
      : impl_(std::make_unique<Executor::Impl>(symbol)) {
    Device::get(context);  // fails here when there is no such device
    impl_->context = context;
    impl_->group2ctx = group2ctx;
    impl_->options = options;
    impl_->arg_names = symbol.list_arguments();
    impl_->aux_names = symbol.list_auxiliary_states();
    impl_->output_names = symbol.list_outputs();
    std::set<std::string> seen(impl_->arg_names.begin(), impl_->arg_names.end());
    impl_->args_distinct = seen.size() == impl_->arg_names.size();
    for (const std::string& name : impl_->aux_names)
      require(seen.insert(name).second, "[bind] two different variables are named '", name,
              "', and one of them is an auxiliary state; these are bound by name, so names must differ");
  }

  Executor::Impl& impl() { return *impl_; }
  static Executor::Impl& impl_of(Executor& executor) { return *executor.impl_; }

  void name_outputs(const std::vector<std::string>& names) {
    require(names.size() == impl_->output_names.size(), "[bind] ", names.size(), " names were given for ",
            impl_->output_names.size(), " outputs: ", comma_separated(names));
    impl_->output_names = names;
  }

  // Shapes, types and contexts of every variable and output, from those that are known.
  void infer_all(const NamedShapes& shapes, const NamedTypes& types) {
    Graph& graph = impl_->graph = Graph::from(impl_->symbol);
    set_shapes(graph, shapes);
    set_types(graph, types);
    infer(graph);
    assign_contexts(graph, impl_->context, impl_->group2ctx);
    if (!impl_->group2ctx.empty()) {  // fails here when a state is on another context than the node that updates it
      Graph placed = graph;
      copy_across_contexts(placed);
    }
    for (const GraphNode& node : graph.nodes)
      if (node.is_variable())
        variables_[node.source->name] = {node.source->name, graph.tensor(node.first_output), node.context};
    for (const TensorId output : graph.outputs)
      outputs_.push_back({impl_->output_names[outputs_.size()], graph.tensor(output), graph.producer(output).context});
  }

  struct Described {
    std::string name;
    Tensor tensor;
    Context context;
    // For the variable or its gradient, or for the output.
    NDArray zeros() const {
      try {
        return symbind::zeros(tensor.shape, context, tensor.dtype);
      } catch (const Error& error) {
        fail("[bind] an array for '", name, "' of shape ", tensor.shape, ": ", error.what());
      }
    }
    bool fits(const NDArray& array) const {
      return array && array.shape() == tensor.shape && array.dtype() == tensor.dtype;
    }
  };
  const Described& variable(const std::string& name) const { return variables_.at(name); }

  const std::vector<Described>& outputs() const { return outputs_; }
  void allocate_outputs() {
    for (const Described& output : outputs_) impl_->outputs.push_back(output.zeros());
  }

  void check_context(const std::string& name, const NDArray& array) const {
    const Context wanted = variable(name).context;
    require(array.context().is_gpu() == wanted.is_gpu() && (!wanted.is_gpu() || wanted == array.context()), "[bind] '",
            name, "' is on ", array.context(), ", but is used on ", wanted);
  }

  ExecutorPtr finish(std::shared_ptr<Workspace> workspace) {
    if (impl_->arg_buffers.empty()) impl_->arg_buffers = impl_->args;
    if (impl_->grad_buffers.empty()) impl_->grad_buffers = impl_->grads;
    if (impl_->output_buffers.empty()) impl_->output_buffers = impl_->outputs;
    for (size_t i = 0; i < impl_->grads.size(); ++i) {
      const Described& wanted = variables_.at(impl_->arg_names[i]);
      const bool other_type = impl_->grads[i] && impl_->grads[i].dtype() != wanted.tensor.dtype;
      impl_->typed_grads.push_back(other_type ? wanted.zeros() : NDArray());
    }
    impl_->workspace = workspace ? std::move(workspace) : std::make_shared<Workspace>();
    return ExecutorPtr(new Executor(std::move(impl_)));  // NOLINT: its constructor is private
  }

 private:
  std::unique_ptr<Executor::Impl> impl_;
  std::unordered_map<std::string, Described> variables_;
  std::vector<Described> outputs_;
};

namespace {

// Users write an unknown dimension as 0.
NamedShapes from_public(const NamedShapes& given) {
  NamedShapes shapes;
  for (const auto& [name, shape] : given) shapes[name] = Shape::from_public(shape.dims());
  return shapes;
}

std::shared_ptr<Workspace> workspace_of(const ExecutorPtr& shared) {
  return shared ? ExecutorBuilder::impl_of(*shared).workspace : nullptr;
}

// A view of the shared buffer of this name; one that is too small is replaced by a larger one with the same values.
NDArray from_shared_buffer(NamedArrays* buffers, const std::string& name, const ExecutorBuilder::Described& wanted) {
  if (!buffers) return wanted.zeros();
  NDArray& buffer = (*buffers)[name];
  const bool alike = buffer && buffer.context() == wanted.context && buffer.dtype() == wanted.tensor.dtype;
  if (alike && buffer.bytes() >= wanted.tensor.bytes()) return buffer.prefix(wanted.tensor.shape, wanted.tensor.dtype);
  NDArray fresh = wanted.zeros();
  if (alike) buffer.copyto(fresh.prefix(buffer.shape(), buffer.dtype()));
  if (!buffer || buffer.bytes() < fresh.bytes()) buffer = fresh;
  return fresh;
}

}  // namespace

ExecutorPtr Bind::operator()(const Symbol& symbol, Context context, const Arrays& args,
                             const ExecutorOptions& options) const {
  ExecutorBuilder builder(symbol, context, options.group2ctx, options.options);
  Executor::Impl& made = builder.impl();
  made.args = args.resolve(made.arg_names, "args", false);
  made.aux = options.aux_states.resolve(made.aux_names, "aux_states", made.aux_names.empty());
  made.grads = options.args_grad.resolve(made.arg_names, "args_grad", true);
  made.reqs = options.grad_req.resolve(made.arg_names, std::set<std::string>{});

  NamedShapes shapes;
  NamedTypes types;
  for (size_t i = 0; i < made.args.size(); ++i) {
    const std::string& name = made.arg_names[i];
    const Shape& shape = shapes.emplace(name, made.args[i].shape()).first->second;
    const DType dtype = types.emplace(name, made.args[i].dtype()).first->second;
    require(shape == made.args[i].shape() && dtype == made.args[i].dtype(), "[bind] two variables are named '", name,
            "', and their arrays differ: ", shape, " ", dtype, " and ", made.args[i].shape(), " ",
            made.args[i].dtype());
  }
  for (size_t i = 0; i < made.aux.size(); ++i) {
    shapes[made.aux_names[i]] = made.aux[i].shape();
    types[made.aux_names[i]] = made.aux[i].dtype();
  }
  builder.infer_all(shapes, types);
  for (size_t i = 0; i < made.args.size(); ++i) {
    builder.check_context(made.arg_names[i], made.args[i]);
    if (!made.grads[i]) made.reqs[i] = GradReq::null;
    if (!made.grads[i]) continue;
    const bool same_type = made.grads[i].dtype() == made.args[i].dtype();
    require(made.grads[i].shape() == made.args[i].shape() &&
                (same_type || (is_floating(made.grads[i].dtype()) && is_floating(made.args[i].dtype()))),
            "[bind] the gradient array of '", made.arg_names[i], "' is ", made.grads[i].shape(), " ",
            made.grads[i].dtype(), ", the argument ", made.args[i].shape(), " ", made.args[i].dtype());
    builder.check_context(made.arg_names[i], made.grads[i]);
  }
  for (size_t i = 0; i < made.aux.size(); ++i) builder.check_context(made.aux_names[i], made.aux[i]);
  builder.allocate_outputs();
  return builder.finish(workspace_of(options.shared_exec));
}

ExecutorPtr simple_bind(const Symbol& symbol, Context context, const NamedShapes& shapes,
                        const SimpleBindOptions& options) {
  ExecutorBuilder builder(symbol, context, options.group2ctx, options.options);
  Executor::Impl& made = builder.impl();
  if (!options.output_names.empty()) builder.name_outputs(options.output_names);
  builder.infer_all(from_public(shapes), options.type_dict);
  std::set<std::string> inputs;
  for (const auto& [name, shape] : shapes) inputs.insert(name);
  made.reqs = options.grad_req.resolve(made.arg_names, inputs);

  Executor::Impl* shared = options.shared_exec ? &ExecutorBuilder::impl_of(*options.shared_exec) : nullptr;
  const std::unordered_set<std::string> shared_names(options.shared_arg_names.begin(), options.shared_arg_names.end());
  const auto from = [](const NamedArrays& arrays, const std::string& name) {
    const auto found = arrays.find(name);
    return found == arrays.end() ? NDArray() : found->second;
  };
  for (size_t i = 0; i < made.arg_names.size(); ++i) {
    const std::string& name = made.arg_names[i];
    const ExecutorBuilder::Described& wanted = builder.variable(name);
    const bool listed = shared_names.contains(name);
    const NDArray other = listed && shared ? from(shared->arg_dict, name) : NDArray();
    made.in_shared_buffers.push_back(!listed);
    made.args.push_back(wanted.fits(other) ? other
                        : listed           ? wanted.zeros()
                                           : from_shared_buffer(options.shared_buffer, name, wanted));
    if (made.reqs[i] == GradReq::null) {
      made.grads.emplace_back();
      continue;
    }
    const NDArray other_grad = listed && shared ? from(shared->grad_dict, name) : NDArray();
    made.grads.push_back(wanted.fits(other_grad) ? other_grad
                         : listed                ? wanted.zeros()
                                  : from_shared_buffer(options.shared_results, buffer_of_gradient(name), wanted));
  }
  for (const std::string& name : made.aux_names) {
    const ExecutorBuilder::Described& wanted = builder.variable(name);
    const NDArray other = shared ? from(shared->aux_dict, name) : NDArray();
    made.aux.push_back(wanted.fits(other) ? other : wanted.zeros());
  }
  for (size_t i = 0; i < builder.outputs().size(); ++i)
    made.outputs.push_back(from_shared_buffer(options.shared_results, buffer_of_output(i), builder.outputs()[i]));
  return builder.finish(workspace_of(options.shared_exec));
}

ExecutorPtr Executor::reshape(const NamedShapes& shapes, const ReshapeOptions& options) {
  const Impl& self = *impl_;
  ExecutorBuilder builder(self.symbol, self.context, self.group2ctx, self.options);
  Impl& made = builder.impl();
  builder.name_outputs(self.output_names);
  NamedTypes types;
  for (size_t i = 0; i < self.args.size(); ++i) types[self.arg_names[i]] = self.args[i].dtype();
  for (size_t i = 0; i < self.aux.size(); ++i) types[self.aux_names[i]] = self.aux[i].dtype();
  builder.infer_all(from_public(shapes), types);

  // The same array if the shape is the same, else a view of the shared buffer, else a new array; `own`: always new.
  const auto resized = [&](const std::string& name, const NDArray& now, NDArray& buffer, bool named, bool own) {
    const ExecutorBuilder::Described& wanted = builder.variable(name);
    if (!own && wanted.fits(now)) return now;
    require(named || options.partial_shaping || wanted.fits(now), "[reshape] '", name, "' would change from ",
            now.shape(), " to ", wanted.tensor.shape, " although it was not named; allow it with partial_shaping");
    if (own || options.own_memory) return buffer = wanted.zeros();
    if (wanted.tensor.bytes() <= buffer.bytes()) return buffer.prefix(wanted.tensor.shape, wanted.tensor.dtype);
    require(options.allow_up_sizing, "[reshape] '", name, "' would grow from ", now.shape(), " to ",
            wanted.tensor.shape, "; allow it with allow_up_sizing");
    buffer = wanted.zeros();
    return buffer;
  };
  made.reqs = self.reqs;
  made.arg_buffers = self.arg_buffers;
  made.grad_buffers = self.grad_buffers;
  for (size_t i = 0; i < self.args.size(); ++i) {
    const std::string& name = self.arg_names[i];
    const bool named = shapes.count(name) > 0;
    const bool own = options.own_memory;
    made.args.push_back(resized(name, self.args[i], made.arg_buffers[i], named, own && named));
    const bool as_typed = self.grads[i] && self.grads[i].dtype() == self.args[i].dtype();
    made.grads.push_back(as_typed ? resized(name, self.grads[i], made.grad_buffers[i], named, own) : NDArray());
    if (!self.grads[i] || as_typed) continue;
    const ExecutorBuilder::Described& wanted = builder.variable(name);
    const bool same = !own && wanted.tensor.shape == self.grads[i].shape();
    made.grads.back() = same ? self.grads[i] : zeros(wanted.tensor.shape, wanted.context, self.grads[i].dtype());
  }
  for (size_t i = 0; i < self.aux.size(); ++i) {
    NDArray buffer = self.aux[i];
    made.aux.push_back(resized(self.aux_names[i], self.aux[i], buffer, false, false));
  }
  made.output_buffers = self.output_buffers;
  for (size_t i = 0; i < self.outputs.size(); ++i) {
    const ExecutorBuilder::Described& wanted = builder.outputs()[i];
    NDArray& buffer = made.output_buffers[i];
    const bool alike = buffer.context() == wanted.context && buffer.dtype() == wanted.tensor.dtype;
    if (options.own_memory || !alike || wanted.tensor.bytes() > buffer.bytes()) buffer = wanted.zeros();
    made.outputs.push_back(buffer.prefix(wanted.tensor.shape, wanted.tensor.dtype));
  }
  return builder.finish(options.own_memory ? nullptr : self.workspace);
}

std::vector<NDArray> eval(const Symbol& symbol, const NamedArrays& args, Context context) {
  ExecutorOptions options;
  options.grad_req = "null";
  return bind(symbol, context, args, options)->forward(false);
}

}  // namespace symbind
