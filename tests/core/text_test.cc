#include "symbind/core/text.h"

#include <cmath>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "symbind/core/log.h"
#include "symbind/core/ndarray.h"

#include "tests/support/arrays.h"
#include "tests/support/comma_locale.h"

namespace symbind::testing {
namespace {

TEST(Text, OfNumbersDoesNotDependOnTheLocale) {
  const CommaLocale comma;
  std::ostringstream user;
  user << 1234567;
  ASSERT_EQ(user.str(), "1.234.567") << "the locale is in force for the program";
  RecordProperty("in_c", CommaLocale::in_c());

  EXPECT_EQ(join(1234567, " ", 0.5), "1234567 0.5");
  EXPECT_EQ(comma_separated(std::vector<double>{1000, 0.25}), "1000, 0.25");
  EXPECT_EQ(fixed_text(1234.5, 2), "1234.50");
  EXPECT_EQ(scientific_text(12345.678, 3), "1.235e+04");
  EXPECT_EQ(Shape({1234567, 2}).str(), "(1234567,2)");
  EXPECT_EQ(cpu(1234).str(), "cpu(1234)");
  EXPECT_EQ(array({1234.5, 0.25}).str(), "[1.2345e+03 2.5000e-01]\n<NDArray 2 @cpu(0)>");
  EXPECT_EQ(array({12.5, 0.25}, cpu(), DType::float16).str(), "[12.5   0.25]\n<NDArray 2 @cpu(0)>");
  EXPECT_TRUE(fails_with([] { fail("at most ", 65536, ", not ", 1e-3); }, "at most 65536, not 0.001"));

  std::ostringstream shape;  // of the user's own locale
  shape << Shape({5000, 3}) << cpu(1000);
  EXPECT_EQ(shape.str(), "(5000,3)cpu(1000)");
}

TEST(Text, OfNumbersIsWhatPrintfWrites) {
  const double largest = std::numeric_limits<double>::max();
  for (const double value : {0.0, -0.0, 0.5, -1234.5678, 1e-300, largest, -largest, HUGE_VAL, -HUGE_VAL})
    for (const int decimals : {0, 1, 6, 17}) {
      char text[512];
      std::snprintf(text, sizeof text, "%.*f", decimals, value);
      EXPECT_EQ(fixed_text(value, decimals), text);
      std::snprintf(text, sizeof text, "%.*e", decimals, value);
      EXPECT_EQ(scientific_text(value, decimals), text);
    }
}

TEST(Text, LowerCaseChangesAsciiLettersOnly) {
  const CommaLocale comma;
  EXPECT_EQ(lower_case("AdaGrad_İI9"), "adagrad_İi9");
}

TEST(Text, PrintableKeepsUtf8AndEscapesTheRest) {
  EXPECT_EQ(printable("plain\n\ttext"), "plain\n\ttext");
  EXPECT_EQ(printable("Größe 数 😀"), "Größe 数 😀");
  EXPECT_EQ(printable("\xff"
                      "fc1\x80"),
            "\\xfffc1\\x80");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(Text, OfErrorsIsUtf8WhateverTheyName) {
  EXPECT_EQ(error_of([] { fail("unknown name '", "caf\xe9", "'"); }), "unknown name 'caf\\xe9'");
  EXPECT_EQ(error_of([] { fail("unknown name '", std::string("a\0b", 3), "'"); }), "unknown name 'a\\x00b'");
}

}  // namespace
}  // namespace symbind::testing
