#include "sampler/vcpu/guest_stack.h"

#include <algorithm>
#include <optional>

namespace xenoscope::sampler {
namespace {

// Stacks of 64-bit programs are above this address, those of 32-bit ones below.
constexpr Address k32Bit = Address{1} << 32;
// Limit of one function's frame, in bytes.
constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 20;

// Returns whether it is in the upper half of the addresses, as kernels are; programs are in the
// lower one.
bool IsUpper(Address address) { return (address >> 63) != 0; }

// Returns the stack pointer of user mode in what the processor pushed as the last words of a stack
// when it entered the kernel: instruction pointer, code segment, flags, stack pointer and stack
// segment. 0: they are not these.
Address UserStackAtEnd(std::span<const uint64_t> words) {
  constexpr size_t kPushed = 5;
  constexpr uint64_t kMaxSegment = 0xffff;
  if (words.size() < kPushed) return 0;
  const auto pushed = words.last<kPushed>();
  const bool is_pushed =
      pushed[1] != 0 && pushed[1] <= kMaxSegment && pushed[4] != 0 && pushed[4] <= kMaxSegment;
  const Address stack = pushed[3];
  const bool is_user = !IsUpper(stack) && stack >= k32Bit && stack % sizeof(uint64_t) == 0;
  return is_pushed && is_user ? stack : 0;
}

// Returns the stack pointer with which the kernel left another stack for the last one of `stacks`;
// 0: it is not known. Linux for x86-64 keeps it in the last word of an interrupt stack
// (call_on_stack in arch/x86/include/asm/irq_stack.h). Stacks of exceptions end with what the
// processor pushes: the stack pointer, then the stack segment. A task's stack ends with the
// registers of user mode.
Address OuterStack(const StackPieces& stacks) {
  const StackPieces::Piece& last = stacks.pieces.back();
  if (!IsUpper(last.begin)) return 0;
  const std::span<const uint64_t> words = stacks.WordsOf(last);
  if (const Address user = UserStackAtEnd(words); user != 0) return user;
  for (const size_t from_end : {1, 2}) {
    if (from_end > words.size()) return 0;
    const Address link = words[words.size() - from_end];
    if (!IsUpper(link) || link % sizeof(uint64_t) != 0) continue;
    const bool known = std::ranges::any_of(stacks.pieces, [&](const StackPieces::Piece& piece) {
      return link >= piece.begin && link - piece.begin < piece.count * sizeof(uint64_t);
    });
    if (!known) return link;
  }
  return 0;
}

}  // namespace

std::optional<uint64_t> StackPieces::At(Address address) const {
  for (const Piece& piece : pieces) {
    const uint64_t index = (address - piece.begin) / sizeof(uint64_t);
    if (address >= piece.begin && index < piece.count) return words[piece.first + index];
  }
  return std::nullopt;
}

bool GuestStack::Unwind(DomainId domain, const VcpuContext& context, const StackPieces& stacks,
                        std::vector<Address>& callers) {
  callers.clear();
  // Most kernels have something else in the register, which may point anywhere.
  const auto word_at = [&](Address at) -> std::optional<uint64_t> {
    const std::optional<uint64_t> word = stacks.At(at);
    return word || IsUpper(context.stack) ? word : pages_.Word(at);
  };
  pages_.Begin(domain, context, kMaxMaps);
  if (context.stack < k32Bit) return false;
  Address lowest = context.stack;
  Address frame = context.frame;
  while (frame != 0) {
    const bool is_frame = frame % sizeof(uint64_t) == 0 && frame >= lowest &&
                          frame - lowest <= kMaxFrameBytes && callers.size() < kMaxCallers;
    if (!is_frame) return false;
    const std::optional<uint64_t> next = word_at(frame);
    const std::optional<uint64_t> caller = word_at(frame + sizeof(uint64_t));
    if (!next || !caller) return false;
    if (*caller == 0) return true;
    if (IsUpper(*caller) != IsUpper(context.address)) return false;
    if (!IsText(*caller)) return false;
    callers.push_back(*caller);
    lowest = frame + 2 * sizeof(uint64_t);
    frame = *next;
  }
  return true;
}

void GuestStack::Read(DomainId domain, const VcpuContext& context, StackPieces& stacks) {
  stacks.words.clear();
  stacks.pieces.clear();
  if (context.stack % sizeof(uint64_t) != 0 || context.stack < k32Bit) return;
  pages_.Begin(domain, context, kMaxMaps);
  AddPiece(context.stack, stacks);
}

void GuestStack::ReadOuter(StackPieces& stacks) {
  while (!stacks.empty() && stacks.pieces.size() < kMaxPieces) {
    const Address next = OuterStack(stacks);
    if (next == 0 || !AddPiece(next, stacks)) return;
  }
}

bool GuestStack::AddPiece(Address begin, StackPieces& stacks) {
  StackPieces::Piece piece{begin, stacks.words.size(), 0};
  constexpr size_t kMaxWords = kMaxPieceBytes / sizeof(uint64_t);
  Address at = begin;
  while (at >= begin && at - begin < kMaxPieceBytes && pages_.AppendWords(at, stacks.words)) {
    at += kFrameSize - at % kFrameSize;
  }
  piece.count = std::min(stacks.words.size() - piece.first, kMaxWords);
  stacks.words.resize(piece.first + piece.count);
  if (piece.count > 0) stacks.pieces.push_back(piece);
  return piece.count > 0;
}

bool GuestStack::IsText(Address address) {
  const GuestPages::Translation place = pages_.At(address - address % kFrameSize);
  return place.present && place.executable;
}

}  // namespace xenoscope::sampler
