#include "symbolizer/disassembly.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <memory>

namespace xenoscope::symbolizer {

std::vector<Instruction> Disassemble(Bytes code, Address begin) {
  std::vector<Instruction> instructions;
  csh capstone = 0;
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK) return instructions;
  cs_option(capstone, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): capstone's bytes
  const auto* at = reinterpret_cast<const uint8_t*>(code.data());
  size_t left = code.size();
  uint64_t address = begin;
  {
    const auto free = [](cs_insn* instruction) { cs_free(instruction, 1); };
    const std::unique_ptr<cs_insn, decltype(free)> found(cs_malloc(capstone), free);
    while (left > 0) {
      if (cs_disasm_iter(capstone, &at, &left, &address, found.get())) {
        instructions.push_back(
            {found->address, found->size, fmt::format("{:<7} {}", found->mnemonic, found->op_str)});
      } else {
        instructions.push_back({address, 1, "(bad)"});
        ++at;
        ++address;
        --left;
      }
    }
  }
  cs_close(&capstone);
  return instructions;
}

}  // namespace xenoscope::symbolizer
