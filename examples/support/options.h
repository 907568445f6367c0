// Options of a program, `--name value`: declared once, with what they mean, and then read and explained alike in all
// programs.
//
//     int64_t epochs = 10;
//     Options options("mlp", "Trains a perceptron on handwritten digits.");
//     options.add("--epochs", epochs, "how often every digit is seen");
//     options.parse(argc, argv);
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "symbind/symbind.h"

namespace examples {

using namespace symbind;

class Options {
 public:
  Options(std::string program, std::string about) : program_(std::move(program)), about_(std::move(about)) {}

  // What a variable holds is its default, and is printed by --help.
  Options& add(const std::string& name, std::string& value, const std::string& help, const std::string& what = "TEXT") {
    return add(name, what, help, value, [&value](const std::string& text) {
      value = text;
      return true;
    });
  }
  Options& add(const std::string& name, int64_t& value, const std::string& help, int64_t least = 1) {
    return add(name, "N", help, join(value),
               [&value, least](const std::string& text) { return read_number(text, value) && value >= least; });
  }
  template <std::floating_point Number>
  Options& add(const std::string& name, Number& value, const std::string& help) {
    return add(name, "X", help, join(value),
               [&value](const std::string& text) { return read_number(text, value) && value >= 0; });
  }
  Options& add_switch(const std::string& name, bool& value, const std::string& help) {
    return add(name, "0|1", help, join(value), [&value](const std::string& text) {
      value = text == "1";
      return text == "0" || text == "1";
    });
  }
  // Numbers with commas between them.
  Options& add(const std::string& name, std::vector<int64_t>& values, const std::string& help, int64_t least = 1) {
    return add(name, "N,N", help, numbers_text(values), [&values, least](const std::string& text) {
      return read_numbers(text, values) && *std::min_element(values.begin(), values.end()) >= least;
    });
  }
  Options& add(const std::string& name, std::vector<double>& values, const std::string& help) {
    return add(name, "X,X", help, numbers_text(values),
               [&values](const std::string& text) { return read_numbers(text, values); });
  }
  Options& add_choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                      const std::string& help) {
    std::string what;
    for (const std::string& choice : choices) what += (what.empty() ? "" : "|") + choice;
    return add(name, what, help, value, [&value, choices](const std::string& text) {
      value = text;
      return std::find(choices.begin(), choices.end(), text) != choices.end();
    });
  }
  // An option without a value.
  Options& add_flag(const std::string& name, bool& value, const std::string& help) {
    return add(name, "", help, "", [&value](const std::string&) { return value = true; });
  }

  // --help prints what there is and ends the program; anything unknown or wrong fails and says so.
  void parse(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      if (name == "--help") {
        std::cout << usage();
        std::exit(0);
      }
      const auto found = std::find_if(all_.begin(), all_.end(), [&](const Option& each) { return each.name == name; });
      require(found != all_.end(), "unknown option ", name, "\n\n", usage());
      if (found->what.empty()) {
        found->read("");
        continue;
      }
      require(i + 1 < argc, name, " needs a value: ", found->what, "\n\n", usage());
      const std::string value = argv[++i];
      require(found->read(value), name, " takes ", found->what, ": ", value, "\n\n", usage());
    }
  }

  std::string usage() const {
    std::ostringstream out;
    out << "usage: " << program_ << " [options]\n\n" << about_ << "\n\n";
    size_t width = 0;
    for (const Option& each : all_) width = std::max(width, each.name.size() + 1 + each.what.size());
    for (const Option& each : all_) {
      out << "  " << std::left << std::setw(static_cast<int>(width) + 2) << join(each.name, " ", each.what)
          << each.help;
      if (!each.value.empty()) out << " (" << each.value << ")";
      out << "\n";
    }
    return out.str();
  }

 private:
  struct Option {
    std::string name, what, help, value;
    std::function<bool(const std::string& text)> read;
  };

  Options& add(const std::string& name, const std::string& what, const std::string& help, const std::string& value,
               std::function<bool(const std::string&)> read) {
    all_.push_back({name, what, help, value, std::move(read)});
    return *this;
  }
  template <class Number>
  static bool read_number(const std::string& text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  }
  template <class Number>
  static bool read_numbers(const std::string& text, std::vector<Number>& values) {
    values.clear();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      if (!read_number(text.substr(begin, end - begin), values.emplace_back())) return false;
      begin = end + 1;
    }
    return true;
  }
  template <class Number>
  static std::string numbers_text(const std::vector<Number>& values) {
    std::string text;
    for (const Number value : values) text += (text.empty() ? "" : ",") + join(value);
    return text;
  }

  std::string program_, about_;
  std::vector<Option> all_;
};

// The body of a program's main: what it throws is printed, and the program fails.
template <class Body>
int run_program(const std::string& name, Body&& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << "\n";
    return 1;
  }
}

}  // namespace examples
