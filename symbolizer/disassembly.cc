#include "symbolizer/disassembly.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <concepts>
#include <memory>

namespace xenoscope::symbolizer {

namespace {

// Calls use(instruction) for each instruction, up to the first byte that belongs to none. Returns
// the number of bytes left then.
template <std::invocable<const cs_insn&> Use>
size_t ForEachInstruction(Bytes code, Address begin, const Use& use) {
  csh capstone = 0;
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &capstone) != CS_ERR_OK) return 0;
  cs_option(capstone, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): capstone's bytes
  const auto* at = reinterpret_cast<const uint8_t*>(code.data());
  size_t left = code.size();
  uint64_t address = begin;
  {
    const auto free = [](cs_insn* instruction) { cs_free(instruction, 1); };
    const std::unique_ptr<cs_insn, decltype(free)> found(cs_malloc(capstone), free);
    while (left > 0 && cs_disasm_iter(capstone, &at, &left, &address, found.get())) use(*found);
  }
  cs_close(&capstone);
  return left;
}

}  // namespace

std::vector<Instruction> Disassemble(Bytes code, Address begin) {
  std::vector<Instruction> instructions;
  while (!code.empty()) {
    const size_t left = ForEachInstruction(code, begin, [&](const cs_insn& found) {
      instructions.push_back(
          {found.address, found.size, fmt::format("{:<7} {}", found.mnemonic, found.op_str)});
    });
    begin += code.size() - left;
    code = code.last(left);
    if (code.empty()) break;
    instructions.push_back({begin, 1, "(bad)"});
    code = code.subspan(1);
    ++begin;
  }
  return instructions;
}

std::vector<Address> InstructionStarts(Bytes code, Address begin) {
  std::vector<Address> starts;
  ForEachInstruction(code, begin,
                     [&starts](const cs_insn& found) { starts.push_back(found.address); });
  return starts;
}

}  // namespace xenoscope::symbolizer
