// x86-64 code as instructions, in AT&T syntax, as objdump and perf print it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"

namespace xenoscope::symbolizer {

struct Instruction {
  Address address = 0;
  uint32_t size = 0;
  std::string text;
};

// Capstone, which is loaded when it is first needed: its tables would make every command start
// late.
class Disassembler {
 public:
  // Errors (NotFound): capstone is not installed.
  static absl::StatusOr<Disassembler> Load();

  // Disassembles all of `code`, which lies at `begin`. A byte that starts no instruction becomes
  // "(bad)".
  std::vector<Instruction> Disassemble(Bytes code, Address begin) const;

  // Returns where instructions begin in `code`, ascending, up to the first byte that belongs to
  // none.
  std::vector<Address> InstructionStarts(Bytes code, Address begin) const;

 private:
  struct Capstone;
  explicit Disassembler(const Capstone& capstone) : capstone_(&capstone) {}

  const Capstone* capstone_;
};

}  // namespace xenoscope::symbolizer
