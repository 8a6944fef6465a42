// The stack of a vCPU, which dom0 reads through the guest's page tables: a piece of it as it is,
// from which reports unwind a kernel; and the callers of the function that the vCPU was found in,
// by frame pointers.
//
//   frame pointer --> [ the caller's frame pointer | where the caller goes on ]
//                       |
//                       +--> [ its caller's | ... ]           up to a 0, or what is no frame
//
// The vCPU runs on meanwhile, and the guest may put anything there. So each step is checked, and a
// chain that cannot be followed, or leads to what is no code, is cut there. The cost of one chain
// is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/ids.h"
#include "sampler/vcpu/guest_pages.h"
#include "sampler/vcpu/vcpu_calls.h"

namespace xenoscope::sampler {

// Pieces of the stacks of one vCPU.
struct StackPieces {
  struct Piece {
    Address begin = 0;  // address of the first word
    size_t first = 0;   // index of that in `words`
    size_t count = 0;
  };
  std::vector<uint64_t> words;
  // Innermost first: each was entered from the next one.
  absl::InlinedVector<Piece, 4> pieces;

  [[nodiscard]] bool empty() const { return pieces.empty(); }
  // Returns the word at an address that is a multiple of 8, if it is in a piece.
  [[nodiscard]] std::optional<uint64_t> At(Address address) const;
  // Keeps the first `count` pieces.
  void Keep(size_t count) {
    if (count >= pieces.size()) return;
    words.resize(pieces[count].first);
    pieces.resize(count);
  }
  [[nodiscard]] std::span<const uint64_t> WordsOf(const Piece& piece) const {
    return std::span(words).subspan(piece.first, piece.count);
  }
};

// A reader of stacks.
class GuestStack {
 public:
  // Limit of callers, as perf's by default (kernel.perf_event_max_stack).
  static constexpr size_t kMaxCallers = 127;
  // Limit of frames of memory that one chain may map: a stack and its page tables take about eight.
  static constexpr uint64_t kMaxMaps = 48;
  // Limit of the bytes of a piece: the size of the stacks of a kernel (THREAD_SIZE of Linux for
  // x86-64), which begin at multiples of it.
  static constexpr uint64_t kMaxPieceBytes = 16384;
  // Limit of the pieces of a chain: stacks of an exception, an interrupt, a task, and of user mode.
  static constexpr size_t kMaxPieces = 4;

  explicit GuestStack(MappedFrames& frames) : pages_(frames) {}

  // Sets `callers` to the addresses to which the callers return, innermost first; all are of the
  // sample's mode. False when the chain was cut, that is, did not end in an outermost frame. For
  // 64-bit code only. `stacks` is what Read and ReadOuter found: a kernel's frames are there, or
  // its frame pointer is none; a program's may be beyond it.
  bool Unwind(DomainId domain, const VcpuContext& context, const StackPieces& stacks,
              std::vector<Address>& callers);

  // Sets `stacks` to the words of the stack from the stack pointer on: up to a page that the guest
  // does not map, which Linux has behind each of a kernel's stacks, or kMaxPieceBytes. Empty: there
  // is no stack of 64-bit code. The guest may have changed some of the words since the vCPU was
  // stopped.
  void Read(DomainId domain, const VcpuContext& context, StackPieces& stacks);
  // Adds the stacks from which that of the last Read was entered, as far as the last words of a
  // kernel's stack name them.
  void ReadOuter(StackPieces& stacks);

 private:
  // Adds the piece that begins at `begin`. False: nothing is mapped there.
  bool AddPiece(Address begin, StackPieces& stacks);
  // Returns whether the page tables allow a function to return there.
  bool IsText(Address address);

  GuestPages pages_;
};

}  // namespace xenoscope::sampler
