#include "held.h"

#include <algorithm>
#include <unordered_map>

#include "symbind/core/error.h"

#include "nanobind_versions.h"

namespace symbind::python {

// Accessed with the GIL held, except for its address.
struct Held::Cell {
  nb::object object;
  Keeping* keeping = nullptr;
  bool shared = false;  // C++ has the address of the object's C++ part: it must not be released early
};

// The references that one Python object keeps.
struct Keeping {
  PyObject* keeper;
  std::vector<Held::Cell*> cells = {};
  PyObject* whole = nullptr;  // held by one of the cells

  static std::unordered_map<PyObject*, Keeping*>& all() {
    static auto* table = new std::unordered_map<PyObject*, Keeping*>;
    return *table;
  }
  static Keeping* find(PyObject* keeper) {
    const auto found = all().find(keeper);
    return found == all().end() ? nullptr : found->second;
  }
  // Destroyed with the keeper.
  static Keeping& of(PyObject* keeper) {
    Keeping*& entry = all()[keeper];
    if (entry) return *entry;
    entry = new Keeping{keeper};
    delete_with(keeper, entry);
    return *entry;
  }
  explicit Keeping(PyObject* of) : keeper(of) {}
  ~Keeping() {
    for (Held::Cell* cell : cells) cell->keeping = nullptr;
    all().erase(keeper);
  }
  Keeping(const Keeping&) = delete;
  Keeping& operator=(const Keeping&) = delete;

  int visit_all(visitproc visit, void* arg) const {
    for (const Held::Cell* cell : cells) Py_VISIT(cell->object.ptr());
    return 0;
  }
  bool holds(nb::handle object) const {
    return std::ranges::any_of(cells, [&](const Held::Cell* cell) { return cell->object.is(object); });
  }
  void clear() {
    std::vector<nb::object> dropped;  // released at the end: their destructors may change the list
    whole = nullptr;
    for (Held::Cell* cell : cells)
      if (!cell->shared) dropped.push_back(std::move(cell->object));
  }
};

Held::Held(nb::object object, nb::handle keeper)
    : cell_(new Cell{std::move(object)}, [](Cell* cell) {
        if (!Py_IsInitialized()) return;  // the process is ending: no interpreter to release it
        AcquireGil acquire;
        if (cell->keeping) std::erase(cell->keeping->cells, cell);
        delete cell;
      }) {
  if (keeper.ptr()) keep_in(keeper);
}

nb::object Held::get() const {
  require(cell_->object.is_valid(), "the Python object that implements this one was freed by the garbage collector");
  return cell_->object;
}

void Held::keep_in(nb::handle keeper) const {
  if (cell_->keeping) return;
  cell_->keeping = &Keeping::of(keeper.ptr());
  cell_->keeping->cells.push_back(cell_.get());
}

void Held::share() const { cell_->shared = true; }

void keep_alive(nb::handle keeper, nb::handle object) {
  if (const Keeping* known = Keeping::find(keeper.ptr()); known && known->holds(object)) return;
  delete_with(keeper, new Held(nb::borrow(object), keeper));
}

void keep_whole(nb::handle part, nb::handle whole) {
  if (part.is_none() || part.is(whole)) return;
  const bool made_by_python = nb::inst_state(part).second;
  const Keeping *own = Keeping::find(part.ptr()), *others = Keeping::find(whole.ptr());
  if (made_by_python || (own && own->whole) || (others && others->holds(part))) return;
  keep_alive(part, whole);
  Keeping::of(part.ptr()).whole = whole.ptr();
}

nb::handle keeper_of(nb::handle object) {
  for (const Keeping* keeping = Keeping::find(object.ptr()); keeping && keeping->whole;
       keeping = Keeping::find(object.ptr()))
    object = keeping->whole;
  return object;
}

// ---- For whom C++ works at the moment ------------------------------------------------------------------------------

namespace {
thread_local PyObject* current_keeper = nullptr;  // alive: the call that set it has a reference
}

KeeperScope::KeeperScope(nb::handle keeper) : previous_(current_keeper) { current_keeper = keeper.ptr(); }
KeeperScope::~KeeperScope() { current_keeper = previous_.ptr(); }
nb::handle KeeperScope::current() { return current_keeper; }

// ---- The collector's view ------------------------------------------------------------------------------------------

namespace {

int traverse(PyObject* self, visitproc visit, void* arg);

// The attributes that nanobind provides; attributes that a Python class adds are visited by that class.
PyObject** attributes_of_part(PyObject* self) {
  const PyTypeObject* type = Py_TYPE(self);
  while (type && type->tp_traverse != traverse) type = type->tp_base;
  if (!type || type->tp_dictoffset <= 0) return nullptr;
  return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + type->tp_dictoffset);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (PyObject** attributes = attributes_of_part(self)) Py_VISIT(*attributes);
  const Keeping* keeping = Keeping::find(self);
  return keeping ? keeping->visit_all(visit, arg) : 0;
}

int clear(PyObject* self) {
  if (PyObject** attributes = attributes_of_part(self)) Py_CLEAR(*attributes);
  if (Keeping* keeping = Keeping::find(self)) keeping->clear();
  return 0;
}

}  // namespace

PyType_Slot collector_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

}  // namespace symbind::python
