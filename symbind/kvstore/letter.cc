#include "symbind/kvstore/letter.h"

namespace symbind {

LetterWriter& LetterWriter::bytes(std::span<const std::byte> data) {
  text_.insert(text_.end(), data.begin(), data.end());
  return *this;
}

}  // namespace symbind
