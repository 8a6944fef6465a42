#include "guests/ftrace/page_reader.h"

namespace xenoscope::guests {
namespace {

constexpr uint32_t kLostFlag = 1U << 31;     // RB_MISSED_EVENTS
constexpr uint32_t kLostCounted = 1U << 30;  // RB_MISSED_STORED: their number follows the events

constexpr uint32_t kTypeBits = 5;
constexpr uint32_t kTypeMask = (1U << kTypeBits) - 1;
constexpr uint32_t kDeltaBits = 27;
constexpr uint64_t kStampBits = 59;
constexpr uint64_t kStampTop = ~uint64_t{0} << kStampBits;

enum : uint32_t { kPadding = 29, kTimeExtend = 30, kTimeStamp = 31 };

constexpr size_t kWord = sizeof(uint32_t);

uint64_t LoadWord(Bytes bytes, uint32_t offset, uint32_t size) {
  if (size == sizeof(uint64_t)) return Load<uint64_t>(bytes, offset).value_or(0);
  return Load<uint32_t>(bytes, offset).value_or(0);
}

// Returns the time that an absolute stamp means, which lacks the upper 5 bits: those of the time
// before, or one more if it would go back.
uint64_t CompleteStamp(uint64_t stamp, uint64_t before) {
  if ((before & kStampTop) == 0) return stamp;
  stamp |= before & kStampTop;
  return stamp < before ? stamp + (uint64_t{1} << kStampBits) : stamp;
}

}  // namespace

PageReader::PageReader(Bytes page, const PageLayout& layout) {
  const auto begin = Load<uint64_t>(page, 0);
  const auto commit = Load<uint32_t>(page, layout.commit_offset);
  if (!begin || !commit || page.size() < layout.data_offset) {
    damaged_ = page.size();
    return;
  }
  tsc_ = *begin;
  data_ = page.subspan(layout.data_offset);
  const uint32_t length = *commit & ~(kLostFlag | kLostCounted);
  if (length > data_.size()) {
    damaged_ = data_.size();
    data_ = {};
    return;
  }
  lost_before_ = (*commit & kLostFlag) != 0;
  if ((*commit & kLostCounted) != 0) lost_events_ = LoadWord(data_, length, layout.commit_size);
  data_ = data_.first(length);
}

bool PageReader::Damage() {
  damaged_ += data_.size();
  data_ = {};
  return false;
}

bool PageReader::Next(RawEvent& event) {
  while (data_.size() >= kWord) {
    const auto head = LoadUnchecked<uint32_t>(data_.data());
    const uint32_t type = head & kTypeMask;
    const uint64_t delta = head >> kTypeBits;
    if (type - 1 < kPadding - 1) [[likely]] {  // the length is in the type
      const size_t size = size_t{type} * kWord;
      if (data_.size() - kWord < size) return Damage();
      tsc_ += delta;
      event.tsc = tsc_;
      event.data = data_.subspan(kWord, size);
      data_ = data_.subspan(kWord + size);
      return true;
    }
    if (type == kPadding && delta == 0) {  // up to the end of the page
      data_ = {};
      return false;
    }
    if (data_.size() < 2 * kWord) return Damage();
    const auto second = LoadUnchecked<uint32_t>(data_.data() + kWord);
    if (type == kTimeExtend) {
      tsc_ += (uint64_t{second} << kDeltaBits) + delta;
      data_ = data_.subspan(2 * kWord);
      continue;
    }
    if (type == kTimeStamp) {
      tsc_ = CompleteStamp((uint64_t{second} << kDeltaBits) + delta, tsc_);
      data_ = data_.subspan(2 * kWord);
      continue;
    }
    // The length counts its own word, and the next event begins at a whole word.
    const uint64_t length = (uint64_t{second} + kWord - 1) / kWord * kWord;
    if (length < kWord || length > data_.size() - kWord) return Damage();
    const Bytes body = data_.subspan(2 * kWord, length - kWord);
    data_ = data_.subspan(kWord + length);
    if (type == kPadding) {
      // An event that its writer took back. Where it had no time of its own, the kernel says 1.
      if (delta != 1) tsc_ += delta;
      continue;
    }
    tsc_ += delta;
    event.tsc = tsc_;
    event.data = body;
    return true;
  }
  return data_.empty() ? false : Damage();
}

}  // namespace xenoscope::guests
