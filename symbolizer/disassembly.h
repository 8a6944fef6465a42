// x86-64 code as instructions, in AT&T's syntax as objdump and perf write it.
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

// All of `code`, which lies at `begin`; what is no instruction becomes "(bad)", a byte at a time.
std::vector<Instruction> Disassemble(Bytes code, Address begin);

// Where instructions begin in `code`, ascending, up to the first byte that is of none.
std::vector<Address> InstructionStarts(Bytes code, Address begin);

}  // namespace xenoscope::symbolizer
