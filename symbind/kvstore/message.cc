#include "symbind/kvstore/message.h"

namespace symbind {

MessageWriter& MessageWriter::bytes(std::span<const std::byte> data) {
  text_.insert(text_.end(), data.begin(), data.end());
  return *this;
}

}  // namespace symbind
