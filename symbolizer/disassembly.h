// x86-64 code as instructions, in AT&T syntax, as objdump and perf print it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/mode.h"

namespace xenoscope::symbolizer {

struct Instruction {
  Address address = 0;
  uint32_t size = 0;
  std::string text;
};

// Disassembles all of `code`, which lies at `begin`. A byte that starts no instruction becomes
// "(bad)".
std::vector<Instruction> Disassemble(Bytes code, Address begin);

// Returns where instructions begin in `code`, ascending, up to the first byte that belongs to none.
std::vector<Address> InstructionStarts(Bytes code, Address begin);

}  // namespace xenoscope::symbolizer
