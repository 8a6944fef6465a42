#include "symbolizer/unwind/unwinder.h"

#include <algorithm>
#include <optional>

namespace xenoscope::symbolizer {
namespace {

// The registers of a caller, or why there are none.
struct Step {
  std::optional<UserRegisters> registers;
  ChainEnd end = ChainEnd::kBadRule;
};

// Why memory at the address could not be read: stacks grow down, and the piece has its top.
ChainEnd Unread(const StackPiece& stack, Address address) {
  return address >= stack.begin ? ChainEnd::kStackCut : ChainEnd::kBadRule;
}

// Finds the value of a caller's register by its rule. False: `end` says why not.
bool Apply(const UnwindRule& rule, const UnwindTable& table, const UserRegisters& registers,
           const StackPiece& stack, Address cfa, uint32_t& steps_left, uint64_t& value,
           ChainEnd& end) {
  Address from = cfa + static_cast<uint64_t>(int64_t{rule.value});
  switch (rule.kind) {
    case RuleKind::kSameValue:
      value = registers.at(rule.column);
      return true;
    case RuleKind::kUndefined:
      value = 0;
      return true;
    case RuleKind::kValueOffset:
      value = from;
      return true;
    case RuleKind::kRegister:
      value = registers.at(static_cast<uint32_t>(rule.value));
      return true;
    case RuleKind::kOffset:
      break;
    case RuleKind::kExpression:
    case RuleKind::kValueExpression: {
      const auto result =
          EvaluateExpression(table.Expression(rule), registers, stack, steps_left, cfa);
      end = ChainEnd::kBadRule;
      if (!result) return false;
      value = *result;
      if (rule.kind == RuleKind::kValueExpression) return true;
      from = *result;
      break;
    }
  }
  const auto read = stack.Read<uint64_t>(from);
  end = Unread(stack, from);
  value = read.value_or(0);
  return read.has_value();
}

Step StepByTable(const UnwindRow& row, const UnwindTable& table, const UserRegisters& registers,
                 const StackPiece& stack, uint32_t& steps_left) {
  if ((row.flags & UnwindRow::kBad) != 0) return {};
  std::optional<Address> cfa;
  if ((row.flags & UnwindRow::kExpression) == 0) {
    cfa = registers.at(row.cfa_register) + static_cast<uint64_t>(int64_t{row.cfa_value});
  } else {
    cfa = EvaluateExpression(table.CfaExpression(row), registers, stack, steps_left);
  }
  if (!cfa) return {};
  UserRegisters callers = registers;
  callers[kRsp] = *cfa;
  for (uint8_t i = 0; i < row.rules; ++i) {
    const UnwindRule rule = table.RuleAt(row, i);
    if (rule.column == kRip && rule.kind == RuleKind::kUndefined) {
      return {std::nullopt, ChainEnd::kOutermost};
    }
    ChainEnd end = ChainEnd::kBadRule;
    if (Apply(rule, table, registers, stack, *cfa, steps_left, callers.at(rule.column), end)) {
      continue;
    }
    if (rule.column == kRip || rule.column == kRsp) return {std::nullopt, end};
    // Compilers leave the rule of a register that was popped, whose place is now below the stack
    // pointer: the register has its value.
    callers.at(rule.column) = registers.at(rule.column);
  }
  return {callers};
}

// Returns whether the caller's frame can be there: above its callee's, or on a stack from which
// that of the callee was entered.
bool GoesOut(const StackPiece& stack, Address before, Address after) {
  if (after > before) return true;
  return std::ranges::any_of(stack.outer, [&](const StackPiece& piece) {
    return piece.Contains(after) && !piece.Contains(before);
  });
}

// Whether the stack is as the kernel leaves it for a new process: the number of arguments, the
// arguments, and 0 (System V psABI for AMD64, 3.4.1), with a frame pointer of 0. The code that
// begins there, as the loader's _start, has a table in some files only.
bool IsProcessEntry(const UserRegisters& registers, const StackPiece& stack) {
  constexpr uint64_t kMaxArguments = 1 << 16;
  const Address begin = registers[kRsp];
  const auto arguments = stack.Read<uint64_t>(begin);
  if (registers[kRbp] != 0 || !arguments || *arguments == 0 || *arguments > kMaxArguments) {
    return false;
  }
  const auto first = stack.Read<uint64_t>(begin + sizeof(uint64_t));
  const auto end = stack.Read<uint64_t>(begin + (1 + *arguments) * sizeof(uint64_t));
  return first && end && *first != 0 && *end == 0;
}

// The frame pointer of a function points at that of its caller, with the return address above it.
Step StepByFramePointer(const UserRegisters& registers, const StackPiece& stack) {
  if (IsProcessEntry(registers, stack)) return {std::nullopt, ChainEnd::kOutermost};
  const Address frame = registers[kRbp];
  if (frame < registers[kRsp] || frame % sizeof(uint64_t) != 0) {
    return {std::nullopt, ChainEnd::kNoTable};
  }
  const auto outer = stack.Read<uint64_t>(frame);
  const auto caller = stack.Read<uint64_t>(frame + sizeof(uint64_t));
  if (!outer || !caller) return {std::nullopt, ChainEnd::kNoTable};
  UserRegisters callers = registers;
  callers[kRbp] = *outer;
  callers[kRip] = *caller;
  callers[kRsp] = frame + 2 * sizeof(uint64_t);
  return {callers};
}

// The function that jumps there was called, and nothing was pushed since.
Step StepFromThunk(const UserRegisters& registers, const StackPiece& stack) {
  const auto caller = stack.Read<uint64_t>(registers[kRsp]);
  if (!caller) return {std::nullopt, Unread(stack, registers[kRsp])};
  UserRegisters callers = registers;
  callers[kRip] = *caller;
  callers[kRsp] += sizeof(uint64_t);
  return {callers};
}

}  // namespace

const Unwinder::Memo& Unwinder::RowAt(AddressSpaceId space, Address address) {
  // Fibonacci hashing: the upper bits of the product depend on all bits of the address.
  const uint64_t hash = (address + space.value) * 0x9e37'79b9'7f4a'7c15;
  Memo& memo = memos_[hash >> (64 - kMemoBits)];
  if (memo.address == address && memo.space == space && address != 0) return memo;
  memo = {};
  memo.space = space;
  memo.address = address;
  memo.code = source_.CodeAt(space, address);
  const UnwindTable* const table = memo.code.table;
  const uint32_t row = table == nullptr ? UnwindTable::kNoRow : table->Find(memo.code.address);
  memo.has_row = row != UnwindTable::kNoRow;
  if (memo.has_row) memo.row = table->RowAt(row);
  return memo;
}

UnwoundChain Unwinder::Unwind(AddressSpaceId space, UserRegisters registers,
                              const StackPiece& stack, std::vector<Address>& callers) {
  UnwoundChain chain;
  const size_t first = callers.size();
  uint32_t steps_left = kMaxExpressionSteps;
  const Memo* memo = &RowAt(space, registers[kRip]);
  while (true) {
    const bool by_table = memo->has_row;
    const bool is_signal_frame =
        by_table && (memo->row.flags & (UnwindRow::kSignalFrame | UnwindRow::kRegisters)) != 0;
    const bool is_thunk = memo->code.is_thunk;
    if (!by_table && !is_thunk && !(memo->code.mapped && memo->code.frame_pointers)) {
      chain.end = ChainEnd::kNoTable;
      return chain;
    }
    Step step = by_table ? StepByTable(memo->row, *memo->code.table, registers, stack, steps_left)
                         : StepByFramePointer(registers, stack);
    // Of most instructions of thunks, Linux's table says that nothing called them. It describes the
    // last one, which returns to the begin of the function to which the thunk jumps.
    const bool enters = is_thunk && step.registers && by_table;
    if (is_thunk && !enters) step = StepFromThunk(registers, stack);
    if (!step.registers) {
      chain.end = step.end;
      return chain;
    }
    const bool is_guess = !by_table && !is_thunk && memo->code.file_is_missing;
    const Address stack_before = registers[kRsp];
    registers = *step.registers;
    if (registers[kRip] == 0) {  // the convention for the outermost frame
      if (is_guess) chain.end = ChainEnd::kNoTable;
      return chain;
    }
    // The first frame and those that a signal interrupted stand at an instruction; others stand
    // behind their call, which may be their function's last instruction.
    bool exact = is_signal_frame || enters;
    memo = &RowAt(space, registers[kRip] - (exact ? 0 : 1));
    if (memo->code.entered_kernel && is_signal_frame) {
      chain.user = registers;
      return chain;
    }
    if (!memo->has_row && !exact) {
      // A coroutine returns to the begin of a function that nothing called.
      memo = &RowAt(space, registers[kRip]);
      exact = memo->has_row;
      if (!exact) memo = &RowAt(space, registers[kRip] - 1);
    }
    // A signal may have had a stack of its own, too.
    const bool goes_out = is_signal_frame || GoesOut(stack, stack_before, registers[kRsp]);
    if (!memo->code.mapped || !goes_out) {
      chain.end = by_table ? ChainEnd::kBadRule : ChainEnd::kNoTable;
      return chain;
    }
    if (callers.size() - first == kMaxCallers) {
      chain.end = ChainEnd::kTooDeep;
      return chain;
    }
    // A trampoline to which a signal's handler returns was not called: the handler's return address
    // is its first instruction.
    const bool is_trampoline = memo->has_row && (memo->row.flags & UnwindRow::kSignalFrame) != 0;
    callers.push_back(registers[kRip] + (exact || is_trampoline ? 1 : 0));
    if (!by_table) ++chain.by_frame_pointer;
  }
}

}  // namespace xenoscope::symbolizer
