// A cursor that reads the numbers of DWARF one after another. What lies behind the end reads as 0
// and sets failed(), which a reader checks once after reading what belongs together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace xenoscope::symbolizer {

class DwarfCursor {
 public:
  explicit DwarfCursor(Bytes bytes, uint64_t offset = 0)
      : begin_(bytes.data()), end_(bytes.data() + bytes.size()) {
    failed_ = offset > bytes.size();
    at_ = failed_ ? end_ : begin_ + offset;
  }

  [[nodiscard]] bool AtEnd() const { return at_ == end_; }
  [[nodiscard]] bool failed() const { return failed_; }
  // Returns the offset from the beginning of the bytes given to the constructor.
  [[nodiscard]] uint64_t offset() const { return static_cast<uint64_t>(at_ - begin_); }
  [[nodiscard]] uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }

  template <typename T>
  T Take() {
    if (left() < sizeof(T)) {
      Fail();
      return 0;
    }
    const T value = LoadUnchecked<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  uint8_t U8() { return Take<uint8_t>(); }
  // Takes an unsigned number of 1 to 8 bytes.
  uint64_t Unsigned(unsigned size) {
    if (size == 8) return Take<uint64_t>();
    if (size == 4) return Take<uint32_t>();
    uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) value |= uint64_t{U8()} << (8 * i);
    return value;
  }
  // Take a LEB128 number (DWARF 5, 7.6). Bits beyond 64 are dropped. One of more than kLongestLeb
  // bytes is damaged: a file could make its readers pass over millions again and again.
  uint64_t Uleb() {
    if (at_ != end_ && (std::to_integer<uint8_t>(*at_) & 0x80) == 0) {
      return std::to_integer<uint8_t>(*at_++);
    }
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 7 * kLongestLeb; shift += 7) {
      const uint8_t byte = U8();
      if (shift < 64) value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Fail();
    return 0;
  }
  int64_t Sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 7 * kLongestLeb;) {
      const uint8_t byte = U8();
      if (shift < 64) value |= uint64_t{byte & 0x7fU} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    Fail();
    return 0;
  }
  // Takes a text that ends with a zero byte; the zero is not returned.
  std::string_view Text() {
    const std::byte* zero = std::find(at_, end_, std::byte{0});
    if (zero == end_) {
      Fail();
      return {};
    }
    const auto text = AsText({at_, zero});
    at_ = zero + 1;
    return text;
  }
  // Returns all bytes that are left, without moving.
  [[nodiscard]] Bytes Rest() const { return {at_, end_}; }
  void Skip(uint64_t bytes) {
    if (left() < bytes) return Fail();
    at_ += bytes;
  }

 private:
  // 64 bits need 10 bytes; linkers pad some numbers with a few more.
  static constexpr unsigned kLongestLeb = 16;

  void Fail() {
    failed_ = true;
    at_ = end_;
  }

  const std::byte* begin_;
  const std::byte* end_;
  const std::byte* at_;
  bool failed_ = false;
};

// Returns the text at `offset` in a section of texts; empty where there is none, or where it is
// longer than any name.
inline std::string_view TextAt(Bytes section, uint64_t offset) {
  constexpr uint64_t kLongest = uint64_t{64} << 10;
  if (offset > section.size()) return {};
  return DwarfCursor(section.subspan(offset, std::min(kLongest, section.size() - offset))).Text();
}

}  // namespace xenoscope::symbolizer
