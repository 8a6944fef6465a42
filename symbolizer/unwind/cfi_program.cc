#include "symbolizer/unwind/cfi_program.h"

#include <dwarf.h>

#include <vector>

#include "symbolizer/dwarf/dwarf_cursor.h"

namespace xenoscope::symbolizer {
namespace {

// Limit of nested DW_CFA_remember_state; compilers nest one.
constexpr size_t kMaxRemembered = 32;
constexpr uint8_t kPrimaryBits = 0xc0;
constexpr uint8_t kOperandBits = 0x3f;

class Program {
 public:
  Program(const CfiFunction& function, WorkLimit& limit,
          absl::FunctionRef<void(Address, const CfiRules*)> use)
      : common_(*function.common), function_(function), limit_(limit), use_(use) {}

  void Run() {
    at_ = function_.begin;
    bool good = Execute(common_.instructions, /*is_initial=*/true);
    initial_ = rules_;
    good = good && Execute(function_.instructions, /*is_initial=*/false);
    use_(at_, good ? &rules_ : nullptr);
  }

 private:
  // Returns false at an instruction that is damaged or unknown.
  bool Execute(Bytes instructions, bool is_initial) {
    DwarfCursor cursor(instructions);
    while (!cursor.AtEnd()) {
      if (!limit_.Take()) return false;
      const uint8_t opcode = cursor.U8();
      const uint8_t operand = opcode & kOperandBits;
      switch (opcode & kPrimaryBits) {
        case DW_CFA_advance_loc:
          if (is_initial || !Advance(operand)) return false;
          break;
        case DW_CFA_offset:
          SetOffset(operand, Scaled(cursor.Uleb()), RuleKind::kOffset);
          break;
        case DW_CFA_restore:
          Restore(operand);
          break;
        default:
          if (!ExecuteExtended(opcode, cursor, is_initial)) return false;
      }
      if (cursor.failed()) return false;
    }
    return true;
  }

  bool ExecuteExtended(uint8_t opcode, DwarfCursor& cursor, bool is_initial) {
    switch (opcode) {
      case DW_CFA_nop:
        return true;
      case DW_CFA_advance_loc1:
        return !is_initial && Advance(cursor.U8());
      case DW_CFA_advance_loc2:
        return !is_initial && Advance(cursor.Take<uint16_t>());
      case DW_CFA_advance_loc4:
        return !is_initial && Advance(cursor.Take<uint32_t>());
      case DW_CFA_def_cfa:
      case DW_CFA_def_cfa_sf:
      case DW_CFA_def_cfa_register:
      case DW_CFA_def_cfa_offset:
      case DW_CFA_def_cfa_offset_sf:
      case DW_CFA_def_cfa_expression:
        return DefineCfa(opcode, cursor);
      case DW_CFA_remember_state:
        if (remembered_.size() == kMaxRemembered) return false;
        remembered_.push_back(rules_);
        return true;
      case DW_CFA_restore_state:
        if (remembered_.empty()) return false;
        rules_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case DW_CFA_GNU_args_size:
        cursor.Uleb();  // counts for exceptions only
        return true;
      default:
        return SetRule(opcode, cursor);
    }
  }

  bool DefineCfa(uint8_t opcode, DwarfCursor& cursor) {
    if (opcode == DW_CFA_def_cfa_expression) {
      rules_.cfa_expression = Block(cursor);
      rules_.has_cfa = true;
      return !rules_.cfa_expression.empty();
    }
    const bool sets_register = opcode == DW_CFA_def_cfa || opcode == DW_CFA_def_cfa_sf ||
                               opcode == DW_CFA_def_cfa_register;
    if (sets_register) {
      const uint64_t number = cursor.Uleb();
      if (number >= kUserRegisters) return false;
      rules_.cfa_register = static_cast<uint8_t>(number);
    } else if (!rules_.has_cfa || !rules_.cfa_expression.empty()) {
      return false;
    }
    if (opcode == DW_CFA_def_cfa || opcode == DW_CFA_def_cfa_offset) {
      rules_.cfa_offset = static_cast<int64_t>(cursor.Uleb());
    } else if (opcode == DW_CFA_def_cfa_sf || opcode == DW_CFA_def_cfa_offset_sf) {
      rules_.cfa_offset = Scaled(static_cast<uint64_t>(cursor.Sleb()));
    } else if (!rules_.has_cfa || !rules_.cfa_expression.empty()) {
      return false;
    }
    rules_.cfa_expression = {};
    rules_.has_cfa = true;
    return true;
  }

  bool SetRule(uint8_t opcode, DwarfCursor& cursor) {
    const uint64_t number = cursor.Uleb();
    switch (opcode) {
      case DW_CFA_offset_extended:
        SetOffset(number, Scaled(cursor.Uleb()), RuleKind::kOffset);
        return true;
      case DW_CFA_offset_extended_sf:
        SetOffset(number, Scaled(static_cast<uint64_t>(cursor.Sleb())), RuleKind::kOffset);
        return true;
      case DW_CFA_val_offset:
        SetOffset(number, Scaled(cursor.Uleb()), RuleKind::kValueOffset);
        return true;
      case DW_CFA_val_offset_sf:
        SetOffset(number, Scaled(static_cast<uint64_t>(cursor.Sleb())), RuleKind::kValueOffset);
        return true;
      case DW_CFA_GNU_negative_offset_extended:
        SetOffset(number, Scaled(0 - cursor.Uleb()), RuleKind::kOffset);
        return true;
      case DW_CFA_restore_extended:
        Restore(number);
        return true;
      case DW_CFA_undefined:
        SetOffset(number, 0, RuleKind::kUndefined);
        return true;
      case DW_CFA_same_value:
        SetOffset(number, 0, RuleKind::kSameValue);
        return true;
      case DW_CFA_register: {
        const uint64_t from = cursor.Uleb();
        SetOffset(number, static_cast<int64_t>(from), RuleKind::kRegister);
        return from < kUserRegisters;
      }
      case DW_CFA_expression:
      case DW_CFA_val_expression: {
        const Bytes expression = Block(cursor);
        if (number < kUserRegisters) {
          rules_.registers.at(number) = {
              opcode == DW_CFA_expression ? RuleKind::kExpression : RuleKind::kValueExpression, 0,
              expression};
        }
        return !expression.empty();
      }
      default:
        return false;
    }
  }

  // Registers above 16 (vectors, flags) lead to no caller.
  void SetOffset(uint64_t number, int64_t value, RuleKind kind) {
    if (number < kUserRegisters) rules_.registers.at(number) = {kind, value, {}};
  }
  void Restore(uint64_t number) {
    if (number < kUserRegisters) rules_.registers.at(number) = initial_.registers.at(number);
  }

  // Goes on at a later instruction: the rules up to there are complete.
  bool Advance(uint64_t delta) {
    const Address next = at_ + delta * common_.code_alignment;
    if (next < at_ || next >= function_.end) return false;
    if (next > at_) use_(at_, &rules_);
    at_ = next;
    return true;
  }

  [[nodiscard]] int64_t Scaled(uint64_t factored) const {
    return static_cast<int64_t>(factored * static_cast<uint64_t>(common_.data_alignment));
  }

  static Bytes Block(DwarfCursor& cursor) {
    const uint64_t size = cursor.Uleb();
    const Bytes rest = cursor.Rest();
    cursor.Skip(size);
    return cursor.failed() ? Bytes() : rest.first(size);
  }

  const CfiCommon& common_;
  const CfiFunction& function_;
  WorkLimit& limit_;
  absl::FunctionRef<void(Address, const CfiRules*)> use_;
  Address at_ = 0;
  CfiRules rules_;
  CfiRules initial_;
  std::vector<CfiRules> remembered_;
};

}  // namespace

void RunCfi(const CfiFunction& function, WorkLimit& limit,
            absl::FunctionRef<void(Address begin, const CfiRules* rules)> use) {
  Program(function, limit, use).Run();
}

}  // namespace xenoscope::symbolizer
