// Text in one block of memory, for millions of lines. It replaces fmt where fmt's generality costs
// too much time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace xenoscope::report {

namespace line_buffer_internal {

// The pairs of digits "00" to "99", one after another.
inline constexpr auto kPairs = [] {
  std::array<char, 200> pairs{};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

// Returns the eight hexadecimal digits of a word as bytes; the first digit is in the lowest byte.
constexpr uint64_t HexDigits(uint32_t word) {
  uint64_t x = word;
  x = (x << 32 | x >> 16) & 0x0000ffff0000ffff;
  x = (x << 16 | x >> 8) & 0x00ff00ff00ff00ff;
  x = ((x & 0x000f000f000f000f) << 8) | (x >> 4 & 0x000f000f000f000f);
  // A byte above 9 carries into bit 4 when 6 is added.
  const uint64_t letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101;
  return x + 0x3030303030303030 + letters * ('a' - '0' - 10);
}

}  // namespace line_buffer_internal

// A number as nine digits with leading zeros.
class NineDigits {
 public:
  // `value` is below 10^9.
  explicit NineDigits(uint32_t value) : last_(static_cast<char>('0' + value % 10)) {
    // The two halves hold numbers below 10000, then the four quarters hold numbers below 100, then
    // the eight bytes hold digits. Each division is a multiplication that is exact in its range.
    const uint64_t high = value / 10;
    const uint64_t fours = high / 10'000 | (high % 10'000) << 32;
    const uint64_t hundreds = fours * 10'486 >> 20 & 0x0000'007f'0000'007f;
    const uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
    const uint64_t tens = twos * 103 >> 10 & 0x000f'000f'000f'000f;
    eight_ = (tens | (twos - tens * 10) << 8) + 0x3030'3030'3030'3030;
  }

  // Copies the nine digits to `at`. Returns the end of the copy.
  char* CopyTo(char* at) const {
    std::memcpy(at, &eight_, 8);
    at[8] = last_;
    return at + 9;
  }

 private:
  uint64_t eight_;  // the first eight digits; the lowest byte is the first digit
  char last_;
};

// A block that is filled from the front. The Put functions do not check for the end: before each
// line, the caller calls Reserve with the most bytes that the line can take.
class LineBuffer {
 public:
  // The most bytes that one call of a Put function of a fixed size writes beyond the bytes that it
  // keeps.
  static constexpr size_t kSlack = 128;

  explicit LineBuffer(size_t capacity)
      : memory_(std::make_unique_for_overwrite<char[]>(capacity + kSlack)),
        capacity_(capacity),
        at_(memory_.get()) {}

  std::string_view text() const { return {memory_.get(), size()}; }
  size_t size() const { return static_cast<size_t>(at_ - memory_.get()); }
  void Clear() { at_ = memory_.get(); }

  // Makes room for `bytes` more bytes. It moves the text when the block is too small.
  void Reserve(size_t bytes) {
    if (capacity_ - size() < bytes) [[unlikely]] {
      Grow(bytes);
    }
  }

  // The end of the text, for code that writes characters itself; SetEnd sets the new end.
  char* end() { return at_; }
  void SetEnd(char* end) { at_ = end; }

  void Put(char c) { *at_++ = c; }
  void Put(std::string_view text) {
    if (text.empty()) return;  // an empty text may have a null pointer, which memcpy must not get
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  // Puts the first `length` of `N` characters. It copies all N, which takes one or two
  // instructions.
  template <size_t N>
  void PutFixed(const std::array<char, N>& text, size_t length) {
    static_assert(N <= kSlack);
    std::memcpy(at_, text.data(), N);
    at_ += length;
  }

  // Puts text from outside: bytes that are no printable ASCII, quotes and backslashes become '?'.
  void PutPrintable(std::string_view text) {
    for (const char c : text) Put(c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : '?');
  }
  void PutDecimal(uint64_t value) {
    using line_buffer_internal::kPairs;
    if (value < 10) {
      *at_++ = static_cast<char>('0' + value);
      return;
    }
    char digits[20];
    size_t first = 20;
    while (value >= 100) {
      first -= 2;
      std::memcpy(digits + first, &kPairs[value % 100 * 2], 2);
      value /= 100;
    }
    if (value >= 10) {
      first -= 2;
      std::memcpy(digits + first, &kPairs[value * 2], 2);
    } else {
      digits[--first] = static_cast<char>('0' + value);
    }
    Put(std::string_view(digits + first, 20 - first));
  }
  void PutSigned(int64_t value) {
    if (value < 0) Put('-');
    PutDecimal(value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  }
  // Puts nine digits with leading zeros; `value` is below 10^9.
  void PutNineDigits(uint32_t value) { at_ = NineDigits(value).CopyTo(at_); }
  // Puts hexadecimal digits without a prefix and without leading zeros.
  void PutHex(uint64_t value) {
    using line_buffer_internal::HexDigits;
    const auto leading = static_cast<size_t>(std::countl_zero(value | 1)) / 4;
    const uint64_t parts[2] = {HexDigits(static_cast<uint32_t>(value >> 32)),
                               HexDigits(static_cast<uint32_t>(value))};
    char digits[32];
    std::memcpy(digits, parts, 16);
    std::memcpy(at_, digits + leading, 16);
    at_ += 16 - leading;
  }
  void PutHexPrefixed(uint64_t value) {
    Put('0');
    Put('x');
    PutHex(value);
  }

 private:
  void Grow(size_t bytes) {
    const size_t used = size();
    capacity_ = std::max(capacity_ * 2, used + bytes);
    auto memory = std::make_unique_for_overwrite<char[]>(capacity_ + kSlack);
    std::memcpy(memory.get(), memory_.get(), used);
    memory_ = std::move(memory);
    at_ = memory_.get() + used;
  }

  std::unique_ptr<char[]> memory_;
  size_t capacity_;
  char* at_;
};

}  // namespace xenoscope::report
