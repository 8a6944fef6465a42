// Reads bytes that come from outside. All bounds are checked here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace xenoscope {

static_assert(std::endian::native == std::endian::little,
              "every format read here is little-endian, and so must be the machine");

using Bytes = std::span<const std::byte>;

[[nodiscard]] inline Bytes AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }
[[nodiscard]] inline std::string_view AsText(Bytes bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes as text
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Loads a value at any alignment. The caller has checked that sizeof(T) bytes are there.
template <typename T>
T LoadUnchecked(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Returns the T at `offset`, or nothing when it is not wholly inside.
template <typename T>
[[nodiscard]] std::optional<T> Load(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  return LoadUnchecked<T>(bytes.data() + offset);
}

// Returns the bytes [offset, offset + length), or nothing when they are not wholly inside.
[[nodiscard]] inline std::optional<Bytes> Slice(Bytes bytes, uint64_t offset, uint64_t length) {
  if (offset > bytes.size() || bytes.size() - offset < length) return std::nullopt;
  return bytes.subspan(offset, length);
}

}  // namespace xenoscope
