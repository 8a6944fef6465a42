// Reads the tables by which a kernel of Linux for x86-64 finds the callers of its own functions
// (ORC): the section .orc_unwind_ip has the addresses from which on entries hold, each relative to
// its own place, and .orc_unwind has the entries (arch/x86/include/asm/orc_types.h). The file of a
// module has the same sections, but addresses are made when it is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/mode.h"

namespace xenoscope::symbolizer {

struct OrcSections {
  Bytes addresses;           // .orc_unwind_ip
  Address addresses_at = 0;  // address of that section, as linked
  Bytes entries;             // .orc_unwind
};

// The layout of an entry's bits 8 to 11; bits 0 to 3 are sp_reg and 4 to 7 bp_reg in all.
//   kEnd           4.14 to 6.2      type type end  -
//   kSignalAndEnd  6.3              type type sig. end
//   kFiveTypes     6.4 and later    type type type signal
enum class OrcLayout : uint8_t { kEnd, kSignalAndEnd, kFiveTypes };

// The registers on which entries are based. Numbers of Linux.
enum class OrcRegister : uint8_t {
  kUndefined = 0,
  kPreviousSp = 1,  // the caller's stack pointer, as it was before the call
  kDx = 2,
  kDi = 3,
  kBp = 4,
  kSp = 5,
  kR10 = 6,
  kR13 = 7,
  kBpIndirect = 8,  // the word at bp + offset
  kSpIndirect = 9,  // the word at sp, + offset
};

enum class OrcType : uint8_t {
  kUndefined,         // no code is there, or its caller cannot be found
  kEndOfStack,        // nothing called it
  kCall,              // it was called
  kRegisters,         // its caller was interrupted, and its struct pt_regs is at the base
  kPartialRegisters,  // the same, and only what an interrupt pushes is there (struct iret's frame)
};

struct OrcEntry {
  Address begin = 0;  // it holds from here to the next entry
  OrcType type = OrcType::kUndefined;
  OrcRegister sp_register = OrcRegister::kUndefined;  // the base: the caller's stack pointer is
  int16_t sp_offset = 0;                              // this register plus this offset
  OrcRegister bp_register = OrcRegister::kUndefined;  // the place of the caller's frame pointer;
  int16_t bp_offset = 0;                              // undefined: it was not changed

  bool operator==(const OrcEntry&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const OrcEntry& of) {
    return H::combine(std::move(hash), of.begin, of.type, of.sp_register, of.sp_offset,
                      of.bp_register, of.bp_offset);
  }
};

// Returns the layout of the entries of a kernel, by what is in them. O(n).
OrcLayout OrcLayoutOf(Bytes entries);

// Returns the entries in the order of their addresses, at most one for each. Nothing: the sections
// do not fit together, or are empty. O(n log n).
std::optional<std::vector<OrcEntry>> ReadOrc(const OrcSections& sections);
// Returns the same of entries whose addresses are `begins`, one of each, in this layout.
std::optional<std::vector<OrcEntry>> ReadOrc(std::span<const Address> begins, Bytes entries,
                                             OrcLayout layout);

}  // namespace xenoscope::symbolizer
