// Tests that encode or decode images: they are skipped in a build without libjpeg or libpng, with the library's
// message.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "symbind/core/error.h"
#include "symbind/data/image.h"

namespace symbind::testing {

class CodecTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_codec(); !missing.empty()) GTEST_SKIP() << missing;
  }

 private:
  static std::string missing_codec() {
    NDArray black({1, 1, 3}, cpu(), DType::uint8);
    black.fill(0);
    for (const auto& [format, quality] : {std::pair(".jpg", 95), std::pair(".png", 1)}) try {
        imencode(black, format, quality);
      } catch (const Error& error) {
        if (std::string(error.what()).find("built without") != std::string::npos) return error.what();
      }
    return "";
  }
};

}  // namespace symbind::testing
