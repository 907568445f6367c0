// Python objects that C++ keeps, and how Python's garbage collector finds them there.
//
// A Held is a counted reference to a Python object. Its keeper is the Python object whose C++ part stores it: an
// executor keeps its monitor's callback, an optimizer its schedule. The collector visits what is held from the keeper
// (collector_slots), so a callback that refers back to its executor is freed with it.
//
// Two rules are required. A reference has one keeper. And everything else that shares the keeper's C++ part keeps the
// keeper alive: an executor of a module refers to the module (keep_whole), since what is held is visited from the
// module alone. A Held without a keeper is never visited: its object lives at least as long as the C++ part that stores
// it.
#pragma once

#include "casters.h"

namespace symbind::python {

struct Keeping;

class Held {
 public:
  explicit Held(nb::object object, nb::handle keeper = {});
  // The object, with the GIL held, with a new reference for the caller: a call through it may outlast this Held. Held
  // itself may be copied and dropped on any thread.
  nb::object get() const;
  void keep_in(nb::handle keeper) const;  // sets the keeper later; only the first call has an effect

  // The object's C++ part, which lives as long as the reference.
  template <class T>
  std::shared_ptr<T> as() const {
    T* part = nb::cast<T*>(get());
    share();
    return std::shared_ptr<T>(cell_, part);
  }

 private:
  struct Cell;
  friend struct Keeping;
  void share() const;
  std::shared_ptr<Cell> cell_;
};

// From now on `object` lives as long as `keeper`, and is visited from it.
void keep_alive(nb::handle keeper, nb::handle object);
// `part` shares the C++ part of `whole`, or of an object that it holds: from now on `part` keeps `whole` alive. No
// effect on an object that Python itself created, or that `whole` already holds.
void keep_whole(nb::handle part, nb::handle whole);
// The keeper of what is stored in the C++ part of `object`: the outermost whole it is a part of, or itself.
nb::handle keeper_of(nb::handle object);

// While it lives, objects that this thread creates inside C++ (the operators of a network being compiled) belong to
// this keeper.
class KeeperScope {
 public:
  explicit KeeperScope(nb::handle keeper);
  ~KeeperScope();
  KeeperScope(const KeeperScope&) = delete;
  KeeperScope& operator=(const KeeperScope&) = delete;
  static nb::handle current();

 private:
  nb::handle previous_;
};

// For nb::type_slots of every class that may be a keeper.
extern PyType_Slot collector_slots[];

}  // namespace symbind::python
