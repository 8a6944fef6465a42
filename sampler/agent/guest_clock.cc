#include "sampler/agent/guest_clock.h"

#include <algorithm>

namespace xenoscope::sampler {

// Returns the bounds that both imply; nothing when they contradict each other.
std::optional<GuestClock::Offset> GuestClock::Intersect(const Offset& a, const Offset& b) {
  if (static_cast<int64_t>(b.low - a.low) < 0) return Intersect(b, a);
  const uint64_t later = b.low - a.low;
  if (later > a.width) return std::nullopt;
  return Offset{b.low, std::min(a.width - later, b.width)};
}

void GuestClock::Add(Tsc before, uint64_t guest, Tsc after) {
  const Offset now{guest - after.value, after - before};
  const bool first = answers_.empty();
  const auto both = first ? std::nullopt : Intersect(offsets_.back(), now);
  if (both && guest >= answers_.back().guest) {
    offsets_.back() = *both;
  } else {
    offsets_.push_back(now);
    if (!first && same_rate_) ++jumps_;
  }
  answers_.push_back({before, guest, after, first_epoch_ + offsets_.size() - 1});
}

std::optional<TscRange> GuestClock::ToHost(uint64_t guest) const {
  const auto by_offset = [&](uint64_t epoch) {
    const Offset& offset = offsets_[epoch - first_epoch_];
    return TscRange{Tsc{guest - offset.low - offset.width}, Tsc{guest - offset.low + 1}};
  };
  if (answers_.empty()) return std::nullopt;
  for (size_t i = 0; i + 1 < answers_.size(); ++i) {
    const Answer& left = answers_[i];
    const Answer& right = answers_[i + 1];
    if (guest < left.guest || guest > right.guest) continue;
    if (same_rate_ && left.epoch == right.epoch) return by_offset(left.epoch);
    return TscRange{left.before, right.after + 1};
  }
  const Answer& last = answers_.back();
  if (same_rate_ && guest >= last.guest) return by_offset(last.epoch);
  return std::nullopt;
}

void GuestClock::DropOldAnswers() {
  if (answers_.size() <= kKeptAnswers) return;
  answers_.erase(answers_.begin(), answers_.end() - kKeptAnswers);
  const uint64_t forgotten = answers_.front().epoch - first_epoch_;
  offsets_.erase(offsets_.begin(), offsets_.begin() + static_cast<std::ptrdiff_t>(forgotten));
  first_epoch_ += forgotten;
}

std::optional<Cycles> GuestClock::Error() const {
  if (!same_rate_ || offsets_.empty()) return std::nullopt;
  return offsets_.back().width + 1;
}

}  // namespace xenoscope::sampler
