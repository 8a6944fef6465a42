#include "symbolizer/disassembly.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <concepts>
#include <memory>

#include "base/error.h"
#include "base/shared_library.h"

namespace xenoscope::symbolizer {

// The library's functions.
struct Disassembler::Capstone {
  decltype(cs_open)* open = nullptr;
  decltype(cs_option)* set_option = nullptr;
  decltype(cs_malloc)* allocate = nullptr;
  decltype(cs_disasm_iter)* disassemble_next = nullptr;
  decltype(cs_free)* free = nullptr;
  decltype(cs_close)* close = nullptr;

  static absl::StatusOr<Capstone> Load() {
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                               SharedLibrary::Load("libcapstone.so.4", "instructions"));
    Capstone out;
    XENOSCOPE_RETURN_IF_ERROR(library.Find(
        "cs_open", out.open, "cs_option", out.set_option, "cs_malloc", out.allocate,
        "cs_disasm_iter", out.disassemble_next, "cs_free", out.free, "cs_close", out.close));
    return out;
  }

  // Calls use(instruction) for each instruction, up to the first byte that belongs to none. Returns
  // the number of bytes left then.
  template <std::invocable<const cs_insn&> Use>
  size_t ForEachInstruction(Bytes code, Address begin, const Use& use) const;
};

template <std::invocable<const cs_insn&> Use>
size_t Disassembler::Capstone::ForEachInstruction(Bytes code, Address begin, const Use& use) const {
  csh handle = 0;
  if (open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return 0;
  set_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): capstone's bytes
  const auto* at = reinterpret_cast<const uint8_t*>(code.data());
  size_t left = code.size();
  uint64_t address = begin;
  {
    const auto free_one = [this](cs_insn* instruction) { free(instruction, 1); };
    const std::unique_ptr<cs_insn, decltype(free_one)> found(allocate(handle), free_one);
    while (left > 0 && disassemble_next(handle, &at, &left, &address, found.get())) {
      use(*found);
    }
  }
  close(&handle);
  return left;
}

absl::StatusOr<Disassembler> Disassembler::Load() {
  static const absl::StatusOr<Capstone> capstone = Capstone::Load();
  if (!capstone.ok()) return capstone.status();
  return Disassembler(*capstone);
}

std::vector<Instruction> Disassembler::Disassemble(Bytes code, Address begin) const {
  std::vector<Instruction> instructions;
  while (!code.empty()) {
    const size_t left = capstone_->ForEachInstruction(code, begin, [&](const cs_insn& found) {
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

std::vector<Address> Disassembler::InstructionStarts(Bytes code, Address begin) const {
  std::vector<Address> starts;
  capstone_->ForEachInstruction(
      code, begin, [&starts](const cs_insn& found) { starts.push_back(found.address); });
  return starts;
}

}  // namespace xenoscope::symbolizer
