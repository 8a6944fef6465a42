#include "symbolizer/unwind/orc_rules.h"

#include <dwarf.h>

#include <array>
#include <optional>
#include <utility>

namespace xenoscope::symbolizer {
namespace {

// DWARF numbers of registers (System V psABI for AMD64, figure 3.36).
constexpr uint8_t kRdx = 1;
constexpr uint8_t kRdi = 5;
constexpr uint8_t kR10 = 10;
constexpr uint8_t kR13 = 13;

constexpr int64_t kWord = 8;
// Places in what an interrupt pushes, and in struct pt_regs (arch/x86/include/asm/ptrace.h), which
// ends with that.
constexpr int64_t kPushedRip = 0;
constexpr int64_t kPushedRsp = 3 * kWord;
constexpr int64_t kPushedInRegisters = 16 * kWord;
// DWARF numbers of the registers that pt_regs begins with.
constexpr std::array<uint8_t, 15> kRegistersInOrder = {15, 14, 13, 12, 6, 3, 11, 10,
                                                       9,  8,  0,  2,  1, 4, 5};

std::optional<uint8_t> NumberOf(OrcRegister base) {
  switch (base) {
    case OrcRegister::kDx:
      return kRdx;
    case OrcRegister::kDi:
      return kRdi;
    case OrcRegister::kBp:
    case OrcRegister::kBpIndirect:
      return kRbp;
    case OrcRegister::kSp:
    case OrcRegister::kSpIndirect:
      return kRsp;
    case OrcRegister::kR10:
      return kR10;
    case OrcRegister::kR13:
      return kR13;
    case OrcRegister::kUndefined:
    case OrcRegister::kPreviousSp:
      break;
  }
  return std::nullopt;
}

std::string Operation(int code) { return {static_cast<char>(code)}; }

// An operation with a signed operand (LEB128).
std::string Operation(int code, int64_t operand) {
  constexpr int kBits = 7;
  constexpr int64_t kLow = 0x7f;
  constexpr int64_t kSign = 0x40;
  std::string bytes = Operation(code);
  while (operand < -kSign || operand >= kSign) {
    bytes += static_cast<char>((operand & kLow) | (kLow + 1));
    operand >>= kBits;
  }
  return bytes + static_cast<char>(operand & kLow);
}

CfiRules::Rule AtOffset(int64_t value) { return {RuleKind::kOffset, value, {}}; }

}  // namespace

OrcRules::OrcRules(const OrcEntry& entry) {
  if (entry.type == OrcType::kEndOfStack) {
    rules_.has_cfa = true;
    rules_.cfa_register = kRsp;
    rules_.registers.at(kRip).kind = RuleKind::kUndefined;
    return;
  }
  SetBase(entry);
  switch (entry.type) {
    case OrcType::kRegisters:
      for (size_t i = 0; i < kRegistersInOrder.size(); ++i) {
        rules_.registers.at(kRegistersInOrder.at(i)) = AtOffset(static_cast<int64_t>(i) * kWord);
      }
      rules_.registers.at(kRip) = AtOffset(kPushedInRegisters + kPushedRip);
      rules_.registers.at(kRsp) = AtOffset(kPushedInRegisters + kPushedRsp);
      break;
    case OrcType::kPartialRegisters:
      rules_.registers.at(kRip) = AtOffset(kPushedRip);
      rules_.registers.at(kRsp) = AtOffset(kPushedRsp);
      break;
    case OrcType::kCall:
      rules_.registers.at(kRip) = AtOffset(-kWord);
      break;
    case OrcType::kEndOfStack:
    case OrcType::kUndefined:
      break;
  }
  SetFramePointer(entry);
}

void OrcRules::SetBase(const OrcEntry& entry) {
  const std::optional<uint8_t> number = NumberOf(entry.sp_register);
  if (!number) return;
  rules_.has_cfa = true;
  if (entry.sp_register == OrcRegister::kBpIndirect) {
    base_expression_ = Operation(DW_OP_breg0 + *number, entry.sp_offset) + Operation(DW_OP_deref);
  } else if (entry.sp_register == OrcRegister::kSpIndirect) {
    base_expression_ = Operation(DW_OP_breg0 + *number, 0) + Operation(DW_OP_deref) +
                       Operation(DW_OP_consts, entry.sp_offset) + Operation(DW_OP_plus);
  } else {
    rules_.cfa_register = *number;
    rules_.cfa_offset = entry.sp_offset;
  }
  rules_.cfa_expression = AsBytes(base_expression_);
}

void OrcRules::SetFramePointer(const OrcEntry& entry) {
  CfiRules::Rule& rule = rules_.registers.at(kRbp);
  if (entry.bp_register == OrcRegister::kPreviousSp) {
    rule = AtOffset(entry.bp_offset);
  } else if (entry.bp_register == OrcRegister::kBp) {
    // The rule's expression begins with the CFA on its stack, which does not matter.
    frame_pointer_expression_ = Operation(DW_OP_breg0 + static_cast<int>(kRbp), entry.bp_offset);
    rule = {RuleKind::kExpression, 0, AsBytes(frame_pointer_expression_)};
  }
}

}  // namespace xenoscope::symbolizer
