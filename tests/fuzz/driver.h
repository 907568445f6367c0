// Runs cases that are generated from numbers, one after the other, each in a separate process. A crash, a timeout or an
// exception that is no Error ends one case only; it is recorded with the command that repeats it. The same number is
// always the same case.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace symbind::fuzz {

enum class Outcome { finished, refused };  // refused: an Error, the right answer to what cannot be done

struct Fuzzer {
  std::string name;  // of the program
  // Runs one case. It writes what the case is to `description` before it runs anything; whatever it throws is a
  // finding.
  std::function<Outcome(uint64_t number, std::ostream& description)> run;
  int seconds_per_case = 30;  // of processor time
};

// The options --minutes, --first, --count, --out and --seed (one case, in this process, with its description printed).
// Returns 0 when nothing was found.
int main_of(const Fuzzer& fuzzer, int argc, char** argv);

}  // namespace symbind::fuzz
