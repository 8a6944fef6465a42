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
  const auto [found, is_new] = mapped_.try_emplace({domain.value, frame});
  Mapping& mapping = found->second;
  if (is_new) {
    ++maps_;
    mapping.page = memory_->Map(domain, frame);
    mapping.since = period_;
  }
  mapping.used = period_;
  return mapping.page;
}

template <typename Condition>
void MappedFrames::UnmapIf(Condition condition) {
  absl::erase_if(mapped_, [&](const auto& of) {
    const auto& [key, mapping] = of;
    if (!condition(key, mapping)) return false;
    if (mapping.page != nullptr) memory_->Unmap(mapping.page);
    return true;
  });
}

bool MappedFrames::Expire(Clock::time_point now) {
  if (now - since_ < kPeriod && mapped_.size() <= kMaxFrames) return false;
  ++period_;
  since_ = now;
  kernel_entries_.clear();
  UnmapIf([this](const Key& /*key*/, const Mapping& mapping) {
    return mapping.page == nullptr || period_ - mapping.since >= kMaxAge ||
           period_ - mapping.used > kMaxUnused;
  });
  // One sample maps a hundred at most. Half as many make room for some time.
  if (mapped_.size() > kMaxFrames / 2) {
    UnmapIf(
        [this](const Key& /*key*/, const Mapping& mapping) { return period_ - mapping.used > 1; });
  }
  if (mapped_.size() > kMaxFrames / 2) Clear();
  return true;
}

void MappedFrames::Drop(DomainId domain) {
  const auto is_its = [domain](const Key& key) { return key.first == domain.value; };
  UnmapIf([&](const Key& key, const Mapping& /*mapping*/) { return is_its(key); });
  absl::erase_if(kernel_entries_, [&](const auto& of) { return is_its(of.first); });
}

void MappedFrames::Clear() {
  UnmapIf([](const Key& /*key*/, const Mapping& /*mapping*/) { return true; });
  kernel_entries_.clear();
}

void GuestPages::Begin(DomainId domain, const VcpuContext& context, uint64_t max_maps) {
  domain_ = domain;
  in_kernel_ = context.mode == Mode::kKernel;
  root_ = (context.page_tables & kFrameMask) >> kFrameShift;
  five_levels_ = context.five_levels;
  maps_before_ = frames_.maps();
  max_maps_ = max_maps;
  page_at_ = nullptr;
}

std::optional<uint64_t> GuestPages::Word(Address address) {
  const uint64_t offset = address % kFrameSize;
  const std::byte* const page = PageAt(address - offset);
  if (page == nullptr) return std::nullopt;
  return LoadOnce(page, offset);
}

bool GuestPages::AppendWords(Address address, std::vector<uint64_t>& words) {
  const uint64_t first = address % kFrameSize;
  const std::byte* const page = PageAt(address - first);
  if (page == nullptr) return false;
  for (uint64_t offset = first; offset < kFrameSize; offset += sizeof(uint64_t)) {
    words.push_back(LoadOnce(page, offset));
  }
  return true;
}

const std::byte* GuestPages::PageAt(Address page) {
  if (page_at_ == nullptr || page_ != page) {
    const Translation place = At(page);
    page_at_ = place.present ? Frame(place.frame) : nullptr;
    page_ = page;
  }
  return page_at_;
}

uint64_t GuestPages::TopEntry(Address page, int shift) {
  const uint64_t index = (page >> shift) % kEntries;
  const bool is_program = (page >> 63) == 0;
  // The tables with which programs run may lack a part of the kernel (page table isolation).
  uint64_t* const known =
      in_kernel_ && !is_program ? &frames_.KernelEntry(domain_, index) : nullptr;
  if (known != nullptr && *known != 0) return *known;
  const std::byte* const entries = Frame(root_);
  if (entries == nullptr) return 0;
  const uint64_t entry = LoadOnce(entries, index * sizeof(uint64_t));
  if ((entry & kPresent) == 0) return 0;
  if (known != nullptr) *known = entry;
  return entry;
}

GuestPages::Translation GuestPages::At(Address page) {
  bool executable = true;
  uint64_t table = 0;
  uint64_t size = kFrameSize;
  const bool is_program = (page >> 63) == 0;
  const int top = kLevels + (five_levels_ ? 1 : 0);
  for (int level = top; level >= 1; --level) {
    const int shift = kFrameShift + (level - 1) * kLevelShift;
    size = uint64_t{1} << shift;
    uint64_t entry = 0;
    if (level == top) {
      entry = TopEntry(page, shift);
    } else if (const std::byte* const entries = Frame(table); entries != nullptr) {
      entry = LoadOnce(entries, (page >> shift) % kEntries * sizeof(uint64_t));
    }
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
