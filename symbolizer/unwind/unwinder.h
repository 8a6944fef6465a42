// Finds the callers of a function from its registers and a piece of its stack, by the tables of the
// files that the process maps, or of a kernel. Code without a table, such as that of JIT compilers,
// is left by its frame pointer, if it has one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address_space_id.h"
#include "base/mode.h"
#include "base/user_registers.h"
#include "symbolizer/unwind/unwind_expression.h"
#include "symbolizer/unwind/unwind_table.h"

namespace xenoscope::symbolizer {

// What is known of the code at an address of a process or kernel.
struct UnwindCode {
  bool mapped = false;                 // whether there is executable memory
  const UnwindTable* table = nullptr;  // null: none is known
  Address address = 0;                 // address as linked, for the table
  bool frame_pointers = true;          // whether code without a row may have frame pointers
  bool entered_kernel = false;         // whether it is user mode, in the chain of a kernel
  // Whether it is code that jumps to where a register points, and was called for that: it pushes
  // nothing, so that the address to which its caller returns is at the top of the stack.
  bool is_thunk = false;
  // Whether its file, which may have a table, was not found: frame pointers are a guess then.
  bool file_is_missing = false;
};

// Knows the code of processes, or of kernels.
class UnwindCodeSource {
 public:
  virtual ~UnwindCodeSource() = default;
  // Returned tables stay valid. Called from several threads.
  virtual UnwindCode CodeAt(AddressSpaceId space, Address address) = 0;
};

// How the unwinding of a chain ended.
struct UnwoundChain {
  ChainEnd end = ChainEnd::kOutermost;
  uint32_t by_frame_pointer = 0;  // callers that were found by frame pointers, not by a table
  // Registers of user mode, where the chain of a kernel ends because that entered it.
  std::optional<UserRegisters> user{};
};

// The unwinder, for one thread. Memory: a memo of fixed size.
class Unwinder {
 public:
  // Limit of callers.
  static constexpr size_t kMaxCallers = 512;
  // Limit of steps in the expressions of a chain. A PLT's takes 10, a signal frame's 60.
  static constexpr uint32_t kMaxExpressionSteps = 10'000;

  // `source` outlives the unwinder.
  explicit Unwinder(UnwindCodeSource& source) : source_(source) {}

  // Appends the callers' addresses, innermost first, to `callers`: addresses to which they return.
  // Of code that a signal interrupted, it is the interrupted instruction's plus 1, so that an
  // address minus 1 always is in the instruction that led to the next frame. The chain of a kernel
  // ends where user mode entered it. O(callers), without allocation once `callers` has room.
  UnwoundChain Unwind(AddressSpaceId space, UserRegisters registers, const StackPiece& stack,
                      std::vector<Address>& callers);

 private:
  struct Memo {
    AddressSpaceId space;
    Address address = 0;
    bool has_row = false;
    UnwindRow row;
    UnwindCode code;
  };
  static constexpr int kMemoBits = 14;

  const Memo& RowAt(AddressSpaceId space, Address address);

  UnwindCodeSource& source_;
  std::vector<Memo> memos_ = std::vector<Memo>(size_t{1} << kMemoBits);
};

}  // namespace xenoscope::symbolizer
