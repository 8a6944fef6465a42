// A reader of call frame information: the descriptions of functions in .eh_frame (Linux Standard
// Base, Core, chapter 10.6) and .debug_frame (DWARF 5, 6.4.1). What is damaged is left out and
// counted; nothing outside of the section is read.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/bytes.h"
#include "base/mode.h"

namespace xenoscope::symbolizer {

// A section with call frame information, and the address at which it is loaded.
struct CfiSection {
  Bytes bytes;
  Address address = 0;
  bool is_eh_frame = true;  // false: .debug_frame
};

// What functions share (CIE).
struct CfiCommon {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t pointer_encoding = 0;  // DW_EH_PE_*, of addresses in the functions' entries
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  Bytes instructions;
};

// One function, or part of one (FDE): code at [begin, end), as linked.
struct CfiFunction {
  const CfiCommon* common = nullptr;
  Address begin = 0;
  Address end = 0;
  Bytes instructions;
};

// Calls `use` for every function of the section, in its order. Returns the number of entries that
// were left out, because they are damaged or have a form that x86-64 does not use. O(bytes).
uint64_t ForEachCfiFunction(const CfiSection& section,
                            absl::FunctionRef<void(const CfiFunction&)> use);

}  // namespace xenoscope::symbolizer
