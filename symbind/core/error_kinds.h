// Errors that callers distinguish by type. In Python each also derives from the built-in exception it resembles.
#pragma once

#include "symbind/core/error.h"

namespace SYMBIND_API symbind {

// A file that does not exist.
class FileNotFoundError : public Error {
 public:
  using Error::Error;
};

// An index outside of its axis.
class IndexError : public Error {
 public:
  using Error::Error;
};

// An argument that the called function or operator does not have.
class UnknownArgumentError : public Error {
 public:
  using Error::Error;
};

// require() with one of these kinds.
template <class Kind, class... Parts>
void require_as(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    throw Kind(printable(join(parts...)));
}

}  // namespace symbind
