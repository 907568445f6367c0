#include "symbind/train/bucketing.h"

#include "bindings.h"
#include "bucket_key.h"
#include "module_steps.h"

namespace symbind::python {
namespace {

SymGen sym_gen_from(nb::handle function, nb::handle keeper) {
  if (!PyCallable_Check(function.ptr()))
    throw TypeError("sym_gen must be a function of a bucket key that returns (symbol, data_names, label_names)");
  return [held = Held(nb::borrow(function), keeper)](const BucketKey& key) {
    AcquireGil acquire;
    const nb::object made = held.get()(bucket_key_to_python(key));
    const bool three = PySequence_Check(made.ptr()) && nb::len(made) == 3 && nb::isinstance<Symbol>(made[0]);
    if (!three) throw ValueError("sym_gen must return (symbol, data_names, label_names)");
    return BucketNetwork{nb::cast<Symbol>(made[0]), names_from(made[1]), names_from(made[2])};
  };
}

BucketingOptions options_from(nb::handle default_bucket_key, nb::handle context, nb::handle work_load_list,
                              nb::handle fixed_param_names, nb::handle state_names, nb::handle group2ctxs,
                              nb::handle compression_params, size_t memory_budget, nb::handle compute_dtype) {
  BucketingOptions options{.default_bucket_key = bucket_key_from(default_bucket_key)};
  if (!context.is_none()) options.context = contexts_from(context);
  set_training_options(options, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params,
                       memory_budget, compute_dtype);
  return options;
}

using Self = nb::pointer_and_handle<BucketingModule>;

// A bucket as Python sees it; it keeps the whole module alive.
nb::object bucket_of(nb::handle whole, const std::shared_ptr<Module>& bucket) {
  nb::object object = nb::cast(bucket);
  keep_whole(object, whole);
  return object;
}

nb::object current_of(Self self) {
  if (!self.p->binded) return nb::none();
  for (const auto& [key, bucket] : self.p->buckets())
    if (key == self.p->current_key()) return bucket_of(self.h, bucket);
  return nb::none();
}

void bind_running(ModuleClass<BucketingModule>& type) {
  type.def(
          "get_params",
          [](BucketingModule& self) {
            const BaseModule::Params params = self.BucketingModule::get_params();
            const Module& module = self.default_bucket();
            return nb::make_tuple(dict_in_order(module.param_names(), params.arg_params),
                                  dict_in_order(module.aux_names(), params.aux_params));
          },
          "(arg_params, aux_params) on the CPU, fetched from the devices if they have changed there.")
      .def(
          "switch_bucket",
          [](Self self, nb::handle bucket_key, nb::handle data_shapes, nb::handle label_shapes) {
            const LoggerScope log(logger_of(self.h));
            const BucketKey key = bucket_key_from(bucket_key);
            const std::vector<DataDesc> data = descs_from(data_shapes), label = descs_from(label_shapes);
            const KeeperScope making(self.h);
            ReleaseGil release;
            self.p->switch_bucket(key, data, label);
          },
          nb::arg("bucket_key").none(), nb::arg("data_shapes").none(), nb::arg("label_shapes").none() = nb::none(),
          "Makes a bucket the current one; it is bound to the shapes if it was not visited before.")
      .def(
          "prepare",
          [](Self self, nb::handle data_batch, nb::handle) {
            const LoggerScope log(logger_of(self.h));
            const DataBatch batch = batch_from(data_batch);
            const KeeperScope making(self.h);
            ReleaseGil release;
            self.p->BucketingModule::prepare(batch);
          },
          nb::arg("data_batch"), nb::arg("sparse_row_id_fn").none() = nb::none(),
          "Binds the bucket of a batch that comes next; the current bucket stays.")
      .def(
          "forward",
          [](Self self, nb::handle data_batch, std::optional<Truth> is_train) {
            const LoggerScope log(logger_of(self.h));
            const DataBatch batch = batch_from(data_batch);
            const KeeperScope making(self.h);
            ReleaseGil release;
            self.p->BucketingModule::forward(batch, flag(is_train));
          },
          nb::arg("data_batch"), nb::arg("is_train").none() = nb::none(),
          "Runs the network of the batch's bucket; a batch without a bucket_key is for the default one.")
      .def(
          "borrow_optimizer",
          [](Self self, nb::pointer_and_handle<Module> shared_module) {
            self.p->borrow_optimizer(*shared_module.p);
            keep_alive(self.h, shared_module.h);
          },
          nb::arg("shared_module"), "Shares the optimizer, the store and the updater of another module.");
  def_steps<BucketingModule>(type);
  def_results<BucketingModule>(type, [](BucketingModule& self) -> Module& { return self.current(); });
}

void bind_files(ModuleClass<BucketingModule>& type) {
  type.def(
          "save_checkpoint",
          [](nb::handle self, const std::string& prefix, int epoch, Truth save_optimizer_states, nb::handle) {
            const LoggerScope log(logger_of(self));
            auto& module = nb::cast<BucketingModule&>(self);
            ReleaseGil release;
            module.save_checkpoint(prefix, epoch, save_optimizer_states);
          },
          nb::arg("prefix"), nb::arg("epoch"), nb::arg("save_optimizer_states") = false,
          nb::arg("remove_amp_cast") = true,
          "Writes prefix-KEY-symbol.json for the buckets that were visited, prefix.buckets, prefix-EPOCH.params and, "
          "if "
          "asked, prefix-EPOCH.states.")
      .def("save_optimizer_states", &BucketingModule::save_optimizer_states, nb::arg("fname"),
           nb::call_guard<ReleaseGil>(), "Writes the states of the optimizer to a file.")
      .def("load_optimizer_states", &BucketingModule::load_optimizer_states, nb::arg("fname"),
           nb::call_guard<ReleaseGil>(), "Reads the states of the optimizer from a file.")
      .def("_preload", [](BucketingModule& self, nb::dict symbols, nb::handle arg_params, nb::handle aux_params,
                          const std::string& states) {
        BucketingModule::Symbols loaded;
        for (const auto& [key, symbol] : symbols) loaded.emplace(bucket_key_from(key), nb::cast<Symbol>(symbol));
        self.preload(std::move(loaded), named_arrays_from(arg_params), named_arrays_from(aux_params), states);
      });
}

// Names that scripts read although they start with an underscore.
void bind_inside(ModuleClass<BucketingModule>& type) {
  type.def_prop_ro(
          "symbol", [](const BucketingModule& self) { return self.BucketingModule::symbol(); },
          "The network of the current bucket.")
      .def("_reset_bind", &BucketingModule::reset_bind,
           "Forgets the devices and the visited buckets; the parameters and the optimizer stay.")
      .def_prop_ro("_curr_module", &current_of)
      .def_prop_ro("_curr_bucket_key",
                   [](const BucketingModule& self) -> nb::object {
                     return self.binded ? bucket_key_to_python(self.current_key()) : nb::none();
                   })
      .def_prop_ro("_default_bucket_key",
                   [](const BucketingModule& self) { return bucket_key_to_python(self.options().default_bucket_key); })
      .def_prop_ro("_buckets",
                   [](Self self) {
                     nb::dict buckets;
                     for (const auto& [key, bucket] : self.p->buckets())
                       buckets[bucket_key_to_python(key)] = bucket_of(self.h, bucket);
                     return buckets;
                   })
      .def_prop_ro("_networks",
                   [](const BucketingModule& self) {
                     nb::dict networks;
                     for (const auto& [key, symbol] : self.networks()) networks[bucket_key_to_python(key)] = symbol;
                     return networks;
                   })
      .def_prop_ro("_params_dirty", [](const BucketingModule& self) { return self.default_bucket().params_dirty(); });
  def_training_options<BucketingModule>(type);
}

}  // namespace

void bind_bucketing(nb::module_& m) {
  ModuleClass<BucketingModule> type(m, "BucketingModule", nb::type_slots(collector_slots),
                                    "Networks of many sizes that share their parameters: sym_gen makes the network of "
                                    "a bucket, which the bucket_key of a batch selects.");
  type.def(
      "__init__",
      [](Self self, nb::handle sym_gen, nb::handle default_bucket_key, nb::object logger, nb::handle context,
         nb::handle work_load_list, nb::handle fixed_param_names, nb::handle state_names, nb::handle group2ctxs,
         nb::handle compression_params, size_t memory_budget, nb::handle compute_dtype) {
        const LoggerScope log(logger);
        const BucketingOptions options =
            options_from(default_bucket_key, context, work_load_list, fixed_param_names, state_names, group2ctxs,
                         compression_params, memory_budget, compute_dtype);
        auto network_of = sym_gen_from(sym_gen, self.h);
        try {
          new (self.p) PythonModule<BucketingModule>(std::move(network_of), options);
        } catch (const Error& error) {
          throw ValueError(error.what());  // names that the network does not have
        }
        self.h.attr("logger") = logger.is_none() ? nb::module_::import_("logging") : logger;
        self.h.attr("_sym_gen") = sym_gen;
      },
      nb::arg("sym_gen"), nb::arg("default_bucket_key").none() = nb::none(), nb::arg("logger").none() = nb::none(),
      nb::arg("context").none() = nb::none(), nb::arg("work_load_list").none() = nb::none(),
      nb::arg("fixed_param_names").none() = nb::none(), nb::arg("state_names").none() = nb::none(),
      nb::arg("group2ctxs").none() = nb::none(), nb::arg("compression_params").none() = nb::none(),
      nb::arg("memory_budget") = 0, nb::arg("compute_dtype").none() = nb::none(),
      "sym_gen(key) returns (symbol, data_names, label_names). default_bucket_key is that of batches without one; the "
      "network of the default bucket has all parameters.");
  bind_running(type);
  bind_files(type);
  bind_inside(type);
  m.def(
      "_load_bucket_symbols",
      [](const std::string& prefix) {
        nb::dict symbols;
        for (const auto& [key, symbol] : BucketingModule::load_symbols(prefix))
          symbols[bucket_key_to_python(key)] = symbol;
        return symbols;
      },
      nb::arg("prefix"));
}

}  // namespace symbind::python
