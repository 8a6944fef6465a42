#include "symbolizer/unwind/unwind_expression.h"

#include <dwarf.h>

#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "symbolizer/dwarf/dwarf_cursor.h"

namespace xenoscope::symbolizer {
namespace {

constexpr size_t kMaxDepth = 64;

class Machine {
 public:
  Machine(Bytes expression, const UserRegisters& registers, const StackPiece& stack)
      : expression_(expression), cursor_(expression), registers_(registers), memory_(stack) {}

  std::optional<uint64_t> Run(std::optional<uint64_t> initial, uint32_t& steps_left) {
    if (initial) Push(*initial);
    for (; !cursor_.AtEnd(); --steps_left) {
      if (steps_left == 0) return std::nullopt;
      Step(cursor_.U8());
      if (failed_ || cursor_.failed()) return std::nullopt;
    }
    const uint64_t result = Pop();
    return failed_ ? std::nullopt : std::optional(result);
  }

 private:
  void Push(uint64_t value) {
    if (depth_ == values_.size()) {
      failed_ = true;
    } else {
      values_.at(depth_++) = value;
    }
  }
  uint64_t Pop() {
    if (depth_ == 0) {
      failed_ = true;
      return 0;
    }
    return values_.at(--depth_);
  }
  // Returns the value that is `below` others; 0 is the top.
  uint64_t& At(size_t below) {
    if (below >= depth_) {
      failed_ = true;
      return values_.front();
    }
    return values_.at(depth_ - 1 - below);
  }

  void Step(uint8_t op) {
    if (op >= DW_OP_lit0 && op <= DW_OP_lit31) return Push(op - DW_OP_lit0);
    if (op >= DW_OP_breg0 && op <= DW_OP_breg31) return PushRegister(op - DW_OP_breg0);
    if (PushConstant(op) || Arrange(op)) return;
    switch (op) {
      case DW_OP_nop:
        return;
      case DW_OP_bregx:
        return PushRegister(cursor_.Uleb());
      case DW_OP_deref:
        return Dereference(sizeof(uint64_t));
      case DW_OP_deref_size:
        return Dereference(cursor_.U8());
      case DW_OP_skip:
        return Jump(cursor_.Take<int16_t>());
      case DW_OP_bra: {
        const auto offset = cursor_.Take<int16_t>();
        if (Pop() != 0) Jump(offset);
        return;
      }
      case DW_OP_abs:
      case DW_OP_neg:
      case DW_OP_not:
      case DW_OP_plus_uconst:
        return Push(Unary(op, Pop()));
      default: {
        const uint64_t right = Pop();
        const uint64_t left = Pop();
        return Push(Binary(op, left, right));
      }
    }
  }

  bool PushConstant(uint8_t op) {
    switch (op) {
      case DW_OP_const1u:
        Push(cursor_.U8());
        return true;
      case DW_OP_const1s:
        Push(static_cast<uint64_t>(int64_t{cursor_.Take<int8_t>()}));
        return true;
      case DW_OP_const2u:
        Push(cursor_.Take<uint16_t>());
        return true;
      case DW_OP_const2s:
        Push(static_cast<uint64_t>(int64_t{cursor_.Take<int16_t>()}));
        return true;
      case DW_OP_const4u:
        Push(cursor_.Take<uint32_t>());
        return true;
      case DW_OP_const4s:
        Push(static_cast<uint64_t>(int64_t{cursor_.Take<int32_t>()}));
        return true;
      case DW_OP_const8u:
      case DW_OP_const8s:
        Push(cursor_.Take<uint64_t>());
        return true;
      case DW_OP_constu:
        Push(cursor_.Uleb());
        return true;
      case DW_OP_consts:
        Push(static_cast<uint64_t>(cursor_.Sleb()));
        return true;
      default:
        return false;
    }
  }

  // Copies, drops or moves values.
  bool Arrange(uint8_t op) {
    switch (op) {
      case DW_OP_dup:
        Push(At(0));
        return true;
      case DW_OP_drop:
        Pop();
        return true;
      case DW_OP_over:
        Push(At(1));
        return true;
      case DW_OP_pick:
        Push(At(cursor_.U8()));
        return true;
      case DW_OP_swap:
        std::swap(At(0), At(1));
        return true;
      case DW_OP_rot:
        std::swap(At(0), At(1));
        std::swap(At(1), At(2));
        return true;
      default:
        return false;
    }
  }

  void PushRegister(uint64_t number) {
    const auto offset = static_cast<uint64_t>(cursor_.Sleb());
    if (number >= registers_.size()) {
      failed_ = true;
    } else {
      Push(registers_.at(number) + offset);
    }
  }

  void Dereference(uint8_t size) {
    const uint64_t address = Pop();
    std::optional<uint64_t> value;
    if (size == 8) value = memory_.Read<uint64_t>(address);
    if (size == 4) value = memory_.Read<uint32_t>(address);
    if (size == 2) value = memory_.Read<uint16_t>(address);
    if (size == 1) value = memory_.Read<uint8_t>(address);
    failed_ = failed_ || !value;
    Push(value.value_or(0));
  }

  void Jump(int16_t offset) {
    const auto to = static_cast<int64_t>(cursor_.offset()) + offset;
    if (to < 0 || static_cast<uint64_t>(to) > expression_.size()) {
      failed_ = true;
    } else {
      cursor_ = DwarfCursor(expression_, static_cast<uint64_t>(to));
    }
  }

  uint64_t Unary(uint8_t op, uint64_t value) {
    switch (op) {
      case DW_OP_abs:
        return static_cast<int64_t>(value) < 0 ? 0 - value : value;
      case DW_OP_neg:
        return 0 - value;
      case DW_OP_not:
        return ~value;
      default:
        return value + cursor_.Uleb();  // DW_OP_plus_uconst
    }
  }

  uint64_t Binary(uint8_t op, uint64_t left, uint64_t right) {
    const auto a = static_cast<int64_t>(left);
    const auto b = static_cast<int64_t>(right);
    constexpr unsigned kBits = 64;
    switch (op) {
      case DW_OP_and:
        return left & right;
      case DW_OP_or:
        return left | right;
      case DW_OP_xor:
        return left ^ right;
      case DW_OP_plus:
        return left + right;
      case DW_OP_minus:
        return left - right;
      case DW_OP_mul:
        return left * right;
      case DW_OP_div:
        failed_ = failed_ || b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1);
        return failed_ ? 0 : static_cast<uint64_t>(a / b);
      case DW_OP_mod:
        failed_ = failed_ || right == 0;
        return failed_ ? 0 : left % right;
      case DW_OP_shl:
        return right < kBits ? left << right : 0;
      case DW_OP_shr:
        return right < kBits ? left >> right : 0;
      case DW_OP_shra:
        return static_cast<uint64_t>(a >> (right < kBits ? right : kBits - 1));
      case DW_OP_eq:
        return left == right ? 1 : 0;
      case DW_OP_ne:
        return left != right ? 1 : 0;
      case DW_OP_lt:
        return a < b ? 1 : 0;
      case DW_OP_le:
        return a <= b ? 1 : 0;
      case DW_OP_gt:
        return a > b ? 1 : 0;
      case DW_OP_ge:
        return a >= b ? 1 : 0;
      default:
        failed_ = true;  // no other operator means anything in call frame information
        return 0;
    }
  }

  Bytes expression_;
  DwarfCursor cursor_;
  const UserRegisters& registers_;
  const StackPiece& memory_;
  std::array<uint64_t, kMaxDepth> values_{};
  size_t depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<uint64_t> EvaluateExpression(Bytes expression, const UserRegisters& registers,
                                           const StackPiece& stack, uint32_t& steps_left,
                                           std::optional<uint64_t> initial) {
  return Machine(expression, registers, stack).Run(initial, steps_left);
}

}  // namespace xenoscope::symbolizer
