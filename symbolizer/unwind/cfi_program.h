// Runs the instructions of call frame information (DWARF 5, 6.4.2): for each range of a function's
// code the rules by which the caller's registers are found.
#pragma once

#include <array>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "base/user_registers.h"
#include "symbolizer/unwind/cfi_section.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {

// How a caller's register is found; CFA is the canonical frame address.
enum class RuleKind : uint8_t {
  kSameValue,        // it was not changed
  kUndefined,        // it is lost; of the return address: this is the outermost frame
  kOffset,           // it is in memory at CFA + value
  kValueOffset,      // it is CFA + value
  kRegister,         // it is in the register with the number `value`
  kExpression,       // it is in memory at the result of the expression, which begins with the CFA
  kValueExpression,  // it is that result
};

// The rules at an instruction.
struct CfiRules {
  struct Rule {
    RuleKind kind = RuleKind::kSameValue;
    int64_t value = 0;
    Bytes expression;
  };
  // The CFA is the register plus the offset or, if it is not empty, the result of the expression.
  bool has_cfa = false;
  uint8_t cfa_register = 0;
  int64_t cfa_offset = 0;
  Bytes cfa_expression;
  std::array<Rule, kUserRegisters> registers;
};

// Calls `use(begin, rules)` for each range of the function, in ascending order: the rules hold from
// `begin` to the next begin or the function's end. `rules` is null where an instruction is damaged
// or unknown. Takes a step of `limit` for each instruction, and ends when there are none left.
void RunCfi(const CfiFunction& function, WorkLimit& limit,
            absl::FunctionRef<void(Address begin, const CfiRules* rules)> use);

}  // namespace xenoscope::symbolizer
