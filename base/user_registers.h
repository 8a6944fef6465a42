// The registers of a thread in user mode, or of a guest's kernel, and how a call chain that was
// unwound from them ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/mode.h"

namespace xenoscope {

// The general registers of x86-64 by their DWARF numbers (System V psABI for AMD64, figure 3.36);
// number 16 is the return address's column, and holds the instruction pointer.
inline constexpr size_t kUserRegisters = 17;
using UserRegisters = std::array<uint64_t, kUserRegisters>;
inline constexpr size_t kRbp = 6;
inline constexpr size_t kRsp = 7;
inline constexpr size_t kRip = 16;

// The reason why a call chain ends where it ends.
enum class ChainEnd : uint8_t {
  kOutermost,  // the last frame is the outermost one, or where the kernel was entered
  kStackCut,   // the next frame is beyond the piece of the stack that was recorded
  kNoTable,    // the last frame's code has no table for unwinding
  kBadRule,  // the last frame's rules lead nowhere: the table, the registers or the stack is wrong
  kTooDeep,  // the chain is longer than the limit
  kNoStack,  // no registers or no stack were recorded with the sample
  kBranchesFull,  // the processor keeps no more branch records
};
inline constexpr size_t kChainEnds = 7;

// A chain that does not reach its outermost frame has a last address that no code can have, which
// stands for the reason: addresses from here on are not canonical.
inline constexpr Address kFirstChainEnd = Address{1} << 63;

constexpr Address AddressOf(ChainEnd end) { return kFirstChainEnd + static_cast<Address>(end); }

// Returns the reason that the address stands for, if it does.
constexpr std::optional<ChainEnd> ChainEndAt(Address address) {
  if (address <= kFirstChainEnd || address >= kFirstChainEnd + kChainEnds) return std::nullopt;
  return static_cast<ChainEnd>(address - kFirstChainEnd);
}

// Returns the name of a frame that stands for the reason: "[stack cut]".
constexpr std::string_view NameOf(ChainEnd end) {
  switch (end) {
    case ChainEnd::kOutermost:
      break;
    case ChainEnd::kStackCut:
      return "[stack cut]";
    case ChainEnd::kNoTable:
      return "[no unwind table]";
    case ChainEnd::kBadRule:
      return "[unwinding failed]";
    case ChainEnd::kTooDeep:
      return "[chain too long]";
    case ChainEnd::kNoStack:
      return "[no stack]";
    case ChainEnd::kBranchesFull:
      return "[branch records full]";
  }
  return "[outermost]";
}

}  // namespace xenoscope
