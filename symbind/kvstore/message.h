// The contents of a message between processes of a job: numbers and strings one after the other, read in the order in
// which they were written. All processes of a job run on machines of one kind, so numbers are sent in their own format.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "symbind/core/error.h"

namespace symbind {

class MessageWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T> MessageWriter& operator<<(const T& number) {
    return bytes(std::as_bytes(std::span(&number, 1)));
  }
  MessageWriter& operator<<(const std::string& text) {
    *this << static_cast<uint64_t>(text.size());
    return bytes(std::as_bytes(std::span(text)));
  }
  template <class T>
  MessageWriter& operator<<(const std::vector<T>& items) {
    *this << static_cast<uint64_t>(items.size());
    for (const T& item : items) *this << item;
    return *this;
  }
  MessageWriter& bytes(std::span<const std::byte> data);  // without their count
  std::vector<std::byte> take() { return std::move(text_); }

 private:
  std::vector<std::byte> text_;
};

class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> text) : rest_(text) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T number() {
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() {
    const auto data = bytes(number<uint64_t>());
    return std::string(reinterpret_cast<const char*>(data.data()), data.size());
  }
  template <class T>
  std::vector<T> numbers() {
    std::vector<T> all(count(sizeof(T)));
    for (T& each : all) each = number<T>();
    return all;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> all(count(sizeof(uint64_t)));
    for (std::string& each : all) each = text();
    return all;
  }
  std::span<const std::byte> bytes(size_t length) {
    check(length <= rest_.size());
    const auto taken = rest_.first(length);
    rest_ = rest_.subspan(length);
    return taken;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  static void check(bool complete) {
    require(complete, "[kvstore] a message of another worker ends early: do all run the same version?");
  }
  // The number of items that follow, checked before memory is allocated for them.
  size_t count(size_t smallest_item) {
    const auto items = number<uint64_t>();
    check(items <= rest_.size() / smallest_item);
    return items;
  }

  std::span<const std::byte> rest_;
};

}  // namespace symbind
