// Libraries that are opened at the first call of one of their functions, so that one build of Symbind runs on machines
// that have them and on machines that do not.
#pragma once

#include <atomic>
#include <string>

#include "symbind/core/environment.h"
#include "symbind/core/parts.h"

namespace symbind {

// For a library whose file name has no version.
inline constexpr int no_version = -1;

// The names of a shared library and how to install it. The strings are stored as pointers.
struct SharedLibraryName {
  const char* title;                                // "cuBLASLt"
  const char* file;                                 // "libcublasLt.so"
  int version;                                      // of its interface: libcublasLt.so.13; or no_version
  const char* remedy;                               // "install CUDA 13": how to get it
  const char* usual_folder = "";                    // searched after what the system's loader searches
  const environment::TextVariable* home = nullptr;  // names a folder whose lib64 is searched after that
  bool global = false;                              // its symbols are visible to libraries that it opens itself
};

// Opened once, never closed. Constant-initialised, so that other static initialisers may use it. Thread-safe.
class SharedLibrary {
 public:
  explicit constexpr SharedLibrary(const SharedLibraryName& name) : name_(name) {}

  // Why the library cannot be used; empty when it can. Opens it.
  std::string problem();
  // With the file that was opened.
  Part part();
  // The address of a function; throws an Error that says what is missing and what to do.
  void* address(const char* function);

 private:
  SharedLibraryName name_;
  std::atomic<void*> handle_{nullptr};
};

// A function of such a library, callable like the function itself and looked up at the first call:
//   SharedFunction<decltype(&::cublasLtCreate)> cublasLtCreate{cublas_lt, "cublasLtCreate"};
template <class Pointer>
class SharedFunction;

template <class Result, class... Arguments>
class SharedFunction<Result (*)(Arguments...)> {
 public:
  constexpr SharedFunction(SharedLibrary& library, const char* name) : library_(library), name_(name) {}

  Result operator()(Arguments... arguments) {
    Pointer function = function_.load(std::memory_order_acquire);
    if (!function) [[unlikely]] {
      function = reinterpret_cast<Pointer>(library_.address(name_));
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  using Pointer = Result (*)(Arguments...);

  SharedLibrary& library_;
  const char* name_;
  std::atomic<Pointer> function_{nullptr};
};

}  // namespace symbind
