#include "sampler/vcpu/guest_pages.h"

namespace xenoscope::sampler {
namespace {

// Entries of page tables in long mode (AMD64 Architecture Programmer's Manual, volume 2, 5.3).
constexpr uint64_t kPresent = 1U << 0;
constexpr uint64_t kLargePage = 1U << 7;  // in levels 2 and 3
constexpr uint64_t kNoExecute = uint64_t{1} << 63;
constexpr uint64_t kFrameMask = 0x000f'ffff'ffff'f000;
constexpr int kFrameShift = 12;
constexpr int kLevelShift = 9;
constexpr uint64_t kEntries = uint64_t{1} << kLevelShift;
constexpr int kLevels = 4;

// Reads a word, once, that the guest may be writing to.
uint64_t LoadOnce(const std::byte* page, uint64_t offset) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory shared with a guest
  return *reinterpret_cast<const volatile uint64_t*>(page + offset);
}

}  // namespace

const std::byte* MappedFrames::At(DomainId domain, uint64_t frame) {
  const auto [found, is_new] = mapped_.try_emplace({domain.value, frame}, nullptr);
  if (is_new) {
    ++maps_;
    found->second = memory_->Map(domain, frame);
  }
  return found->second;
}

bool MappedFrames::Expire(Clock::time_point now) {
  if (now - since_ < kMaxAge && mapped_.size() <= kMaxFrames) return false;
  Clear();
  since_ = now;
  return true;
}

void MappedFrames::Clear() {
  for (const auto& [key, page] : mapped_) {
    if (page != nullptr) memory_->Unmap(page);
  }
  mapped_.clear();
}

void GuestPages::Begin(DomainId domain, const VcpuContext& context, uint64_t max_maps) {
  domain_ = domain;
  root_ = (context.page_tables & kFrameMask) >> kFrameShift;
  five_levels_ = context.five_levels;
  maps_before_ = frames_.maps();
  max_maps_ = max_maps;
  page_at_ = nullptr;
}

std::optional<uint64_t> GuestPages::Word(Address address) {
  const uint64_t offset = address % kFrameSize;
  const Address page = address - offset;
  if (page_at_ == nullptr || page_ != page) {
    const Translation place = At(page);
    page_at_ = place.present ? Frame(place.frame) : nullptr;
    page_ = page;
  }
  if (page_at_ == nullptr) return std::nullopt;
  return LoadOnce(page_at_, offset);
}

GuestPages::Translation GuestPages::At(Address page) {
  bool executable = true;
  uint64_t table = root_;
  uint64_t size = kFrameSize;
  const bool is_program = (page >> 63) == 0;
  const int top = kLevels + (five_levels_ ? 1 : 0);
  for (int level = top; level >= 1; --level) {
    const int shift = kFrameShift + (level - 1) * kLevelShift;
    size = uint64_t{1} << shift;
    const std::byte* const entries = Frame(table);
    if (entries == nullptr) return {.size = size};
    const uint64_t index = (page >> shift) % kEntries;
    const uint64_t entry = LoadOnce(entries, index * sizeof(uint64_t));
    if ((entry & kPresent) == 0) return {.size = size};
    const bool counts = level < top || !is_program;
    executable = executable && (!counts || (entry & kNoExecute) == 0);
    table = (entry & kFrameMask) >> kFrameShift;
    if ((level == 2 || level == 3) && (entry & kLargePage) != 0) {
      // In such an entry the low bits of the frame number have another meaning.
      const uint64_t in_page = (uint64_t{1} << (shift - kFrameShift)) - 1;
      table = (table & ~in_page) | ((page >> kFrameShift) & in_page);
      break;
    }
  }
  return {true, executable, table, size};
}

const std::byte* GuestPages::Frame(uint64_t frame) {
  if (frames_.maps() - maps_before_ >= max_maps_) return nullptr;
  return frames_.At(domain_, frame);
}

}  // namespace xenoscope::sampler
