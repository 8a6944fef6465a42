// Evaluates the DWARF expressions of call frame information (DWARF 5, 2.5 and 6.4.2): those of
// PLTs, of signal frames and of hand-written assembly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/mode.h"
#include "base/user_registers.h"

namespace xenoscope::symbolizer {

// The memory that an expression can read: the recorded piece of a stack, at [begin, begin + size),
// and pieces of the stacks from which that one was entered.
struct StackPiece {
  Address begin = 0;
  Bytes bytes;
  std::span<const StackPiece> outer{};  // innermost first

  // Returns the T at `address`; nothing where it is not wholly in one of the pieces.
  template <typename T>
  [[nodiscard]] std::optional<T> Read(Address address) const {
    if (Contains(address)) return Load<T>(bytes, address - begin);
    for (const StackPiece& piece : outer) {
      if (piece.Contains(address)) return Load<T>(piece.bytes, address - piece.begin);
    }
    return std::nullopt;
  }
  // Returns whether the address is in this piece, the outer ones left aside.
  [[nodiscard]] bool Contains(Address address) const {
    return address >= begin && address - begin < bytes.size();
  }
};

// Returns the result of the expression, whose stack begins with `initial` if there is one, and
// takes the steps that it needs from `steps_left`. Nothing: it is damaged, reads other memory than
// the pieces, or needs more steps. O(steps), without allocation.
std::optional<uint64_t> EvaluateExpression(Bytes expression, const UserRegisters& registers,
                                           const StackPiece& stack, uint32_t& steps_left,
                                           std::optional<uint64_t> initial = std::nullopt);

}  // namespace xenoscope::symbolizer
