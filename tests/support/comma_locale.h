// A locale that writes 1234.5 as "1.234,5", for the whole program while this object lives.
#pragma once

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>

#include "tests/support/temp_dir.h"

namespace symbind::testing {

class CommaLocale {
 public:
  CommaLocale()
      : before_(std::locale::global(std::locale(std::locale::classic(), new Punctuation))),
        c_before_(std::setlocale(LC_NUMERIC, nullptr)) {
    static const Generated generated;
    generated.use();
  }
  ~CommaLocale() {
    std::setlocale(LC_NUMERIC, c_before_.c_str());
    std::locale::global(before_);
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  // Does printf write a comma too? Not if the system cannot create such a locale.
  static bool in_c() {
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    return text[1] == ',';
  }

 private:
  struct Punctuation : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  // A C locale generated for the test: none need be installed, and a small one is generated quickly.
  class Generated {
   public:
    Generated() {
      write_file(folder_.file("definition"),
                 "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n");
      const std::string command = "localedef -c -i " + folder_.file("definition") + " -f UTF-8 " +
                                  folder_.file("comma.UTF-8") + " >/dev/null 2>&1";
      (void)!std::system(command.c_str());  // warns about the missing parts of the locale
    }
    void use() const {
      if (!std::filesystem::exists(folder_.file("comma.UTF-8/LC_NUMERIC"))) return;
      ::setenv("LOCPATH", folder_.file("").c_str(), 1);
      std::setlocale(LC_NUMERIC, "comma.UTF-8");
      ::unsetenv("LOCPATH");
    }

   private:
    TempDir folder_;
  };

  std::locale before_;
  std::string c_before_;
};

}  // namespace symbind::testing
