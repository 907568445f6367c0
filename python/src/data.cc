// The iterators NDArrayIter, MNISTIter, PrefetchingIter and ResizeIter, their base class DataIter, and the adapter
// through which C++ calls an iterator written in Python.
#include "data.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <utility>

#include <unistd.h>

#include "symbind/data/mnist_iter.h"
#include "symbind/data/ndarray_iter.h"
#include "symbind/data/prefetch.h"
#include "symbind/data/resize_iter.h"

#include "batch.h"
#include "bindings.h"
#include "bucket_key.h"
#include "convert.h"
#include "def_iterator.h"
#include "held.h"

namespace symbind::python {

// ---- iterators of Python's ------------------------------------------------------------------------------------------

namespace {

// A DataIter without behaviour of its own, for subclasses in Python.
class BareIter final : public DataIter {
 public:
  std::vector<DataDesc> provide_data() const override { return {}; }
  std::vector<DataDesc> provide_label() const override { return {}; }
  void reset() override {}
  std::optional<DataBatch> next() override { return std::nullopt; }
};

// Any Python object that can be iterated over, or that has a method next. An epoch starts with iter(object), as a
// Python loop does: if that returns a generator, each epoch has its own.
class PythonIter final : public DataIter {
 public:
  PythonIter(nb::handle object, nb::handle keeper, bool for_python)
      : object_(nb::borrow(object), keeper), keeper_(keeper), for_python_(for_python) {}

  nb::object object() const { return object_.get(); }
  std::vector<DataDesc> provide_data() const override { return described("provide_data", data_); }
  std::vector<DataDesc> provide_label() const override { return described("provide_label", label_); }
  int64_t batch_size() const override {
    AcquireGil acquire;
    int64_t size = 0;
    if (nb::try_cast(optional_attribute(object_.get(), "batch_size"), size) && size > 0) return size;
    return DataIter::batch_size();
  }
  BucketKey default_bucket_key() const override {
    AcquireGil acquire;
    return bucket_key_from(optional_attribute(object_.get(), "default_bucket_key"));
  }
  void reset() override {
    AcquireGil acquire;
    iterator_.reset();
    if (nb::hasattr(object_.get(), "reset")) object_.get().attr("reset")();
  }
  std::optional<DataBatch> next() override {
    AcquireGil acquire;
    if (!iterator_ && nb::hasattr(object_.get(), "__iter__"))
      iterator_ = Held(object_.get().attr("__iter__")(), keeper_);
    const nb::object batch = iterator_ ? next_of(iterator_->get()) : next_of(object_.get());
    if (batch) return for_python_ ? batch_for_python(batch) : batch_from(batch);
    iterator_.reset();
    return std::nullopt;
  }

 private:
  // A description that can be read only once, such as zip(names, shapes), is cached.
  struct CachedDescs {
    PyObject* of = nullptr;
    std::vector<DataDesc> descs;
  };
  std::vector<DataDesc> described(const char* name, CachedDescs& cache) const {
    AcquireGil acquire;
    nb::object value = object_.get().attr(name);
    if (PyCallable_Check(value.ptr())) value = value();
    if (!PyIter_Check(value.ptr())) return descs_from(value);
    if (cache.of != value.ptr()) cache = {value.ptr(), descs_from(value)};
    return cache.descs;
  }

  // Null at the end.
  static nb::object next_of(nb::handle from) {
    if (PyIter_Check(from.ptr())) {
      nb::object item = nb::steal(PyIter_Next(from.ptr()));
      if (!item && PyErr_Occurred()) throw nb::python_error();
      return item;
    }
    try {
      return from.attr(nb::hasattr(from, "next") ? "next" : "__next__")();
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_StopIteration)) throw;
      return {};
    }
  }

  Held object_;
  nb::handle keeper_;
  bool for_python_;
  std::optional<Held> iterator_;
  mutable CachedDescs data_, label_;
};

// Its threads may wait for the GIL while they prepare a batch, so a thread that waits for them must not hold it; and
// they must end before the interpreter is finalized. In a forked child they do not exist.
class ThreadedIter final : public DataIter {
 public:
  ThreadedIter(std::vector<std::shared_ptr<DataIter>> iters, PrefetchingIterOptions options)
      : inner_(std::make_unique<PrefetchingIter>(std::move(iters), std::move(options))) {
    living().insert(this);
  }
  ~ThreadedIter() override {
    living().erase(this);
    if (getpid() != process_) {
      static_cast<void>(inner_.release());
    } else if (PyGILState_Check()) {
      const ReleaseGil release;
      inner_.reset();
    }
  }
  ThreadedIter(const ThreadedIter&) = delete;
  ThreadedIter& operator=(const ThreadedIter&) = delete;

  // Called when the interpreter ends. A thread may still be in next(), so the iterators are not destroyed; a thread
  // whose source blocks is detached.
  static void stop_all() {
    const std::set<ThreadedIter*> all = std::exchange(living(), {});
    for (ThreadedIter* iter : all) {
      iter->ended_ = true;
      if (getpid() != iter->process_) continue;
      const ReleaseGil release;
      iter->inner_->stop(std::chrono::seconds(1));
    }
  }
  std::vector<DataDesc> provide_data() const override { return inner().provide_data(); }
  std::vector<DataDesc> provide_label() const override { return inner().provide_label(); }
  int64_t batch_size() const override { return inner().batch_size(); }
  BucketKey default_bucket_key() const override { return inner().default_bucket_key(); }
  void reset() override {
    with_copied_errors([&] { inner().reset(); });
  }
  void begin_epoch() override {
    with_copied_errors([&] { inner().begin_epoch(); });
  }
  std::optional<DataBatch> next() override {
    return with_copied_errors([&] { return inner().next(); });
  }

 private:
  // An exception of a thread is stored and thrown at every call; Python clears the exception object it is given.
  template <class Function>
  static std::invoke_result_t<Function> with_copied_errors(Function function) {
    try {
      return function();
    } catch (const nb::python_error& error) {
      AcquireGil acquire;
      throw nb::python_error(error);
    }
  }
  static std::set<ThreadedIter*>& living() {  // accessed with the GIL held
    static auto* all = new std::set<ThreadedIter*>;
    return *all;
  }
  PrefetchingIter& inner() const {
    require(!ended_, "[PrefetchingIter] the program is ending: there are no more batches");
    require(getpid() == process_,
            "[PrefetchingIter] its threads belong to the process that created it and are not in this fork");
    return *inner_;
  }

  std::unique_ptr<PrefetchingIter> inner_;
  std::atomic<bool> ended_ = false;  // with the interpreter
  pid_t process_ = getpid();
};

// The classes written in C++; never released.
std::vector<PyObject*>& native_types() {
  static auto* types = new std::vector<PyObject*>;
  return *types;
}

}  // namespace

// A subclass in Python of one of the C++ classes may override anything, so it is called through its Python methods.
std::shared_ptr<DataIter> iter_from(nb::handle value, const char* what, nb::handle keeper, bool for_python) {
  const auto& native = native_types();
  if (std::find(native.begin(), native.end(), value.type().ptr()) != native.end())
    return Held(nb::borrow(value), keeper).as<DataIter>();
  const bool array = nb::isinstance<NDArray>(value) || nb::hasattr(value, "__array__");
  const bool steps = nb::hasattr(value, "__iter__") || nb::hasattr(value, "next") || nb::hasattr(value, "__next__");
  if (array || !steps || nb::isinstance<nb::str>(value) || nb::isinstance<nb::dict>(value))
    throw TypeError(
        join(what, " must be a data iterator, not ", class_name(value), array ? ": wrap it in mx.io.NDArrayIter" : ""));
  return std::make_shared<PythonIter>(value, keeper, for_python);
}

nb::object described_by_python(DataIter& iter, const char* name) {
  const auto* python = dynamic_cast<PythonIter*>(&iter);
  return python ? nb::object(python->object().attr(name)) : nb::object();
}

nb::object iter_to_python(DataIter* iter) {
  if (!iter) return nb::none();
  if (const auto* python = dynamic_cast<PythonIter*>(iter)) return python->object();
  const nb::object found = nb::find(*iter);
  return found.is_valid() ? found : nb::none();
}

// ---- the classes ----------------------------------------------------------------------------------------------------

void register_native_iterator(nb::handle type) { native_types().push_back(type.inc_ref().ptr()); }

nb::object current_batch(nb::handle iter) {
  nb::object batch = optional_attribute(iter, "current_batch");
  if (batch.is_none()) throw ValueError(join("[", class_name(iter), "] there is no batch: call iter_next() first"));
  return batch;
}

nb::object next_batch(DataIter& iter) {
  std::optional<DataBatch> batch;
  {
    ReleaseGil release;
    batch = iter.next();
  }
  if (!batch) throw nb::stop_iteration();
  return batch_to_python(*batch);
}

nb::object next_by_parts(nb::handle self) {
  if (!nb::cast<bool>(nb::bool_(nb::object(self.attr("iter_next")())))) throw nb::stop_iteration();
  return batch_class()(nb::arg("data") = self.attr("getdata")(), nb::arg("label") = self.attr("getlabel")(),
                       nb::arg("pad") = self.attr("getpad")(), nb::arg("index") = self.attr("getindex")());
}

bool overrides_parts(nb::handle iter, nb::handle base) {
  if (iter.type().is(base)) return false;
  return std::ranges::any_of(
      std::array{"iter_next", "getdata", "getlabel", "getpad", "getindex"},
      [&](const char* name) { return !nb::object(iter.type().attr(name)).is(nb::object(base.attr(name))); });
}

namespace {

IteratorArrays iterator_arrays_from(nb::handle value, const char* what) {
  if (value.is_none()) return {};
  if (nb::isinstance<NDArray>(value)) return {nb::cast<NDArray>(value)};
  if (nb::isinstance<nb::dict>(value)) {
    NamedArrays arrays;
    for (auto [name, array] : nb::borrow<nb::dict>(value))
      arrays[nb::cast<std::string>(nb::str(name))] = array_from(array, cpu());
    return arrays;
  }
  if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) {
    std::vector<NDArray> arrays;
    for (nb::handle item : value) arrays.push_back(array_from(item, cpu()));
    return arrays;
  }
  if (!nb::hasattr(value, "__array__"))
    throw TypeError(join("[NDArrayIter] ", what,
                         " must be an NDArray, a NumPy array, a list of them or a dict of them by name, not ",
                         class_name(value)));
  return {array_from(value, cpu())};
}

nb::list pairs_of(const std::vector<NDArrayIter::Source>& sources) {
  nb::list list;
  for (const auto& [name, array] : sources) list.append(nb::make_tuple(name, array));
  return list;
}

std::vector<NDArrayIter::Source> sources_from(nb::handle value, const char* what) {
  std::vector<std::pair<std::string, nb::object>> pairs;
  if (!value.is_none() && !nb::try_cast(value, pairs))
    throw wrong_type(join("[NDArrayIter] ", what, " is a list of pairs (name, array)"), value);
  std::vector<NDArrayIter::Source> sources;
  for (const auto& [name, array] : pairs) sources.push_back({name, array_from(array, cpu())});
  return sources;
}

// The order of the samples in this epoch, or in the next if none has begun, as a NumPy array.
nb::object order_of(NDArrayIter& iter) {
  iter.begin_epoch();
  const nb::object numpy = numpy_module();
  if (iter.order().empty()) return numpy.attr("arange")(iter.num_data());
  return numpy.attr("array")(nb::cast(iter.order()), nb::arg("dtype") = "int64");
}

void bind_base(nb::module_& m) {
  nb::class_<DataIter, BareIter>(m, "DataIter", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                 "What feeds a network. A subclass defines next(), or iter_next(), getdata(), "
                                 "getlabel(), getpad() and getindex(); further reset(), provide_data and "
                                 "provide_label.")
      // The methods take any `self`: many subclasses never call this __init__.
      .def(
          "__init__",
          [](nb::pointer_and_handle<DataIter> self, nb::object batch_size) {
            new (self.p) BareIter;
            if (!nb::hasattr(self.h, "batch_size")) self.h.attr("batch_size") = batch_size;
          },
          nb::arg("batch_size") = 0)
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", [](nb::handle self) { return self.attr("next")(); })
      .def("next", &next_by_parts, "The next batch; StopIteration at the end of the epoch.")
      .def(
          "reset", [](nb::handle) {}, "Back to the beginning.")
      .def(
          "iter_next", [](nb::handle) { return nb::none(); }, "Steps to the next batch; False at the end.")
      .def(
          "getdata", [](nb::handle) { return nb::none(); }, "The batch's data.")
      .def(
          "getlabel", [](nb::handle) { return nb::none(); }, "The batch's labels.")
      .def(
          "getindex", [](nb::handle) { return nb::none(); }, "The numbers of the batch's samples.")
      .def(
          "getpad", [](nb::handle) { return nb::none(); }, "How many samples at the end only fill the batch up.");
}

void bind_ndarray_iter(nb::module_& m) {
  nb::class_<NDArrayIter, DataIter> type(m, "NDArrayIter", nb::dynamic_attr(),
                                         "Batches of arrays that are in memory; samples are along the first axis.");
  type.def(
      "__init__",
      [](NDArrayIter* self, nb::handle data, nb::handle label, int64_t batch_size, Truth shuffle,
         const std::string& last_batch_handle, const std::string& data_name,
         const std::optional<std::string>& label_name, const std::string& layout) {
        new (self) NDArrayIter(iterator_arrays_from(data, "data"), iterator_arrays_from(label, "label"),
                               {.batch_size = batch_size,
                                .shuffle = shuffle,
                                .last_batch_handle = last_batch_handle,
                                .data_name = data_name,
                                .label_name = label_name.value_or(NDArrayIterOptions().label_name),
                                .layout = layout});
      },
      nb::arg("data").none(), nb::arg("label").none() = nb::none(), nb::arg("batch_size") = 1,
      nb::arg("shuffle") = false, nb::arg("last_batch_handle") = "pad", nb::arg("data_name") = "data",
      nb::arg("label_name").none() = "softmax_label", nb::arg("layout") = "NCHW");
  def_iterator(type, BatchParts::own);
  type.def("hard_reset", &NDArrayIter::hard_reset, "Back to the beginning, leaving out what would be rolled over.")
      .def("iter_next", &NDArrayIter::iter_next)
      .def("getdata", [](const NDArrayIter& self) { return list_of(self.getdata()); })
      .def("getlabel", [](const NDArrayIter& self) { return list_of(self.getlabel()); })
      .def("getpad", &NDArrayIter::getpad)
      .def("getindex", &NDArrayIter::getindex)
      .def_prop_rw(
          "data", [](const NDArrayIter& self) { return pairs_of(self.data()); },
          [](NDArrayIter& self, nb::handle pairs) { self.set_data(sources_from(pairs, "data")); })
      .def_prop_rw(
          "label", [](const NDArrayIter& self) { return pairs_of(self.label()); },
          [](NDArrayIter& self, nb::handle pairs) { self.set_label(sources_from(pairs, "label")); },
          nb::for_setter(nb::arg("value").none()))
      .def_prop_rw("batch_size", &NDArrayIter::batch_size, &NDArrayIter::set_batch_size)
      .def_prop_ro("data_list",
                   [](const NDArrayIter& self) {
                     nb::list list;
                     for (const auto* group : {&self.data(), &self.label()})
                       for (const auto& source : *group) list.append(source.array);
                     return list;
                   })
      .def_prop_ro("num_source", [](const NDArrayIter& self) { return self.data().size() + self.label().size(); })
      .def_prop_ro("num_data", &NDArrayIter::num_data)
      .def_prop_rw("cursor", &NDArrayIter::cursor, &NDArrayIter::set_cursor)
      .def_prop_rw("idx", &order_of,
                   [](NDArrayIter&, nb::handle) {
                     PyErr_SetString(PyExc_AttributeError,
                                     "idx cannot be assigned: construct an NDArrayIter of data[idx] and label[idx]");
                     throw nb::python_error();
                   })
      .def_prop_ro("shuffle", [](const NDArrayIter& self) { return self.options().shuffle; })
      .def_prop_ro("last_batch_handle", [](const NDArrayIter& self) { return self.options().last_batch_handle; })
      .def_prop_ro("layout", [](const NDArrayIter& self) { return self.options().layout; });
}

void bind_mnist_iter(nb::module_& m) {
  nb::class_<MNISTIter, DataIter> type(m, "MNISTIter", nb::dynamic_attr(),
                                       "Batches of MNIST and of the sets published in its format.");
  type.def(
      "__init__",
      [](MNISTIter* self, const std::string& image, const std::string& label, int64_t batch_size, Truth shuffle,
         Truth flat, int64_t seed, Truth silent, int64_t num_parts, int64_t part_index, const std::string& data_name,
         const std::string& label_name, nb::kwargs unused) {
        // MXNet's also accepts the arguments of its other iterators.
        static const std::set<std::string> known = {"data_shape", "input_shape", "prefetch_buffer", "dtype",
                                                    "ctx",        "mean_r",      "scale",           "verbose"};
        for (auto [name, value] : unused)
          if (!known.contains(nb::cast<std::string>(name)))
            throw TypeError(
                join("MNISTIter has no argument ", nb::cast<std::string>(name),
                     "; there are image, label, batch_size, shuffle, flat, seed, silent, num_parts, part_index, "
                     "data_name, label_name"));
        new (self) MNISTIter({.image = image,
                              .label = label,
                              .batch_size = batch_size,
                              .shuffle = shuffle,
                              .flat = flat,
                              .seed = seed,
                              .silent = silent,
                              .num_parts = num_parts,
                              .part_index = part_index,
                              .data_name = data_name,
                              .label_name = label_name});
      },
      nb::arg("image") = "./train-images-idx3-ubyte", nb::arg("label") = "./train-labels-idx1-ubyte",
      nb::arg("batch_size") = 128, nb::arg("shuffle") = true, nb::arg("flat") = false, nb::arg("seed") = 0,
      nb::arg("silent") = false, nb::arg("num_parts") = 1, nb::arg("part_index") = 0, nb::arg("data_name") = "data",
      nb::arg("label_name") = "softmax_label", nb::arg("unused"));
  def_iterator(type, BatchParts::as_arrays);
  type.def_prop_ro("num_data", &MNISTIter::num_data);
}

using Renames = std::vector<std::map<std::string, std::string>>;

void bind_adapters(nb::module_& m) {
  nb::class_<ThreadedIter, DataIter> prefetching(m, "PrefetchingIter", nb::dynamic_attr(),
                                                 nb::type_slots(collector_slots),
                                                 "Makes the batches of one or several iterators ahead of time, on "
                                                 "threads.");
  prefetching.def(
      "__init__",
      [](nb::pointer_and_handle<ThreadedIter> self, nb::object iters, const std::optional<Renames>& rename_data,
         const std::optional<Renames>& rename_label) {
        if (!PyList_Check(iters.ptr()) && !PyTuple_Check(iters.ptr())) {
          nb::list one;
          one.append(iters);
          iters = one;
        }
        std::vector<std::shared_ptr<DataIter>> native;
        for (nb::handle iter : iters) native.push_back(iter_from(iter, "iters", self.h));
        new (self.p) ThreadedIter(std::move(native), {.rename_data = rename_data.value_or(Renames{}),
                                                      .rename_label = rename_label.value_or(Renames{})});
        self.h.attr("iters") = nb::list(iters);
        self.h.attr("n_iter") = nb::len(iters);
        self.h.attr("rename_data") = rename_data;
        self.h.attr("rename_label") = rename_label;
        self.h.attr("current_batch") = nb::none();
      },
      nb::arg("iters").none(), nb::arg("rename_data").none() = nb::none(), nb::arg("rename_label").none() = nb::none());
  def_iterator(prefetching, BatchParts::as_lists);

  nb::class_<ResizeIter, DataIter> resize(m, "ResizeIter", nb::dynamic_attr(), nb::type_slots(collector_slots),
                                          "Epochs of `size` batches from another iterator.");
  resize.def(
      "__init__",
      [](nb::pointer_and_handle<ResizeIter> self, nb::object data_iter, nb::object size, Truth reset_internal) {
        const std::optional<int64_t> batches = integer_from(size);
        if (!batches) throw wrong_type("size is a number of batches", size);
        new (self.p) ResizeIter(iter_from(data_iter, "data_iter", self.h), *batches, reset_internal);
        self.h.attr("data_iter") = data_iter;
        self.h.attr("size") = size;
        self.h.attr("reset_internal") = reset_internal;
        self.h.attr("current_batch") = nb::none();
        if (nb::hasattr(data_iter, "default_bucket_key"))
          self.h.attr("default_bucket_key") = nb::object(data_iter.attr("default_bucket_key"));
      },
      nb::arg("data_iter").none(), nb::arg("size"), nb::arg("reset_internal") = true);
  def_iterator(resize, BatchParts::as_lists);
  resize.def_prop_ro("cur", &ResizeIter::cur, "The number of batches of this epoch so far.");

  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&ThreadedIter::stop_all));
}

}  // namespace

void bind_data(nb::module_& m) {
  m.def("batch_axis", &DataDesc::get_batch_axis, nb::arg("layout").none());
  bind_base(m);
  bind_ndarray_iter(m);
  bind_mnist_iter(m);
  bind_adapters(m);
}

}  // namespace symbind::python
