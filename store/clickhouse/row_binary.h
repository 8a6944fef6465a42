// ClickHouse's format RowBinary: the values of a row one after the other, numbers in little-endian
// order, text with its length before it as LEB128 (ClickHouse's documentation, "Formats").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"

namespace xenoscope::store {

class RowBinaryWriter {
 public:
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void Put(Number value) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its bytes
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Put(std::string_view text);
  // Puts the length of a text or an array.
  void PutLength(size_t length);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads rows, which may be from anywhere. After a value that is not there or not good ok() is
// false, and further values are 0 and empty.
class RowBinaryReader {
 public:
  explicit RowBinaryReader(Bytes bytes) : bytes_(bytes) {}

  template <typename Number>
  requires std::is_arithmetic_v<Number> Number Get() {
    const auto value = Load<Number>(bytes_, at_);
    Advance(value.has_value(), sizeof(Number));
    return value.value_or(Number{});
  }
  // Returns a text of at most kMaxName bytes, which is valid as long as the bytes.
  std::string_view Text();
  // Returns a text of any length as bytes, which are valid as long as the answer's.
  Bytes Blob();

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  void Advance(bool good, size_t size) {
    ok_ = ok_ && good;
    at_ = ok_ ? at_ + size : bytes_.size();
  }

  Bytes bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace xenoscope::store
