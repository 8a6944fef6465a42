// Hash functions for tables of our own: the same value in every run, in a few instructions.
#pragma once

#include <cstdint>

namespace xenoscope {

// 2^64 and 2^32 divided by the golden ratio, odd (Knuth, The Art of Computer Programming 3, 6.4).
inline constexpr uint64_t kGoldenRatio64 = 0x9e3779b97f4a7c15;
inline constexpr uint32_t kGoldenRatio32 = 0x9e3779b1;

// Returns a product whose upper bits depend on all bits of `x`; the lower ones do not.
[[nodiscard]] constexpr uint64_t MultiplyHash(uint64_t x) { return x * kGoldenRatio64; }
[[nodiscard]] constexpr uint32_t MultiplyHash(uint32_t x) { return x * kGoldenRatio32; }

// Returns the number-th output of SplitMix64 with seed 0 (Steele, Lea and Flood, OOPSLA 2014): bits
// that look random, each of which depends on all bits of `number`.
[[nodiscard]] constexpr uint64_t SplitMix64(uint64_t number) {
  uint64_t x = (number + 1) * kGoldenRatio64;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace xenoscope
