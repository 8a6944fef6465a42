#include "correlate/row_key.h"

namespace xenoscope::correlate {
namespace {

// Numbers of subreasons have at most 52 bits, as physical addresses have, or are kNoVector.
constexpr int kExitKindShift = 56;
constexpr uint64_t kNumberMask = (uint64_t{1} << kExitKindShift) - 1;

// The kind of context, whether it is of a nested guest, and the exit's reason.
constexpr uint64_t PackExit(const Context& context) {
  return uint64_t{static_cast<uint8_t>(context.kind)} << 33 | uint64_t{context.nested} << 32 |
         context.reason;
}

constexpr Context UnpackExit(uint64_t packed) {
  return {static_cast<ContextKind>(packed >> 33), (packed >> 32 & 1) != 0,
          static_cast<uint32_t>(packed)};
}

// What the exit was about.
constexpr uint64_t PackSubreason(const Context& context) {
  return uint64_t{static_cast<uint8_t>(context.exit_kind)} << kExitKindShift |
         (context.number & kNumberMask);
}

constexpr void UnpackSubreason(uint64_t packed, Context& context) {
  context.exit_kind = static_cast<ExitKind>(packed >> kExitKindShift);
  context.number = packed & kNumberMask;
  if (context.number == (kNoVector & kNumberMask)) context.number = kNoVector;
}

}  // namespace

KeyLayout::KeyLayout(std::span<const Dimension> by) {
  for (const Dimension dimension : by) {
    std::optional<size_t>& place = places_.at(static_cast<size_t>(dimension));
    if (!place) place = size_++;
  }
}

void KeyLayout::PutContext(const Context& context, RowKey& key) const {
  Put(Dimension::kExit, PackExit(context), key);
  Put(Dimension::kSubreason, PackSubreason(context), key);
  Put(Dimension::kWaiting, context.waiting, key);
  Put(Dimension::kWakeup, context.wakeup, key);
}

Context KeyLayout::GetContext(const RowKey& key) const {
  Context context = UnpackExit(Get(Dimension::kExit, key));
  UnpackSubreason(Get(Dimension::kSubreason, key), context);
  context.waiting = static_cast<uint32_t>(Get(Dimension::kWaiting, key));
  context.wakeup = static_cast<uint32_t>(Get(Dimension::kWakeup, key));
  return context;
}

}  // namespace xenoscope::correlate
