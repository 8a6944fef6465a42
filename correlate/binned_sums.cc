#include "correlate/binned_sums.h"

#include <algorithm>
#include <tuple>

namespace xenoscope::correlate {

void BinnedSums::Shrink() {
  const auto too_many = [this] { return amounts_.size() + latest_.size() > max_entries_; };
  while (last_ - first_ >= max_bins_ || (too_many() && last_ > first_)) {
    ++shift_;
    first_ >>= 1U;
    last_ >>= 1U;
    absl::flat_hash_map<std::pair<uint32_t, uint64_t>, double> merged;
    merged.reserve(amounts_.size());
    for (const auto& [at, amount] : amounts_) merged[{at.first, at.second >> 1U}] += amount;
    amounts_ = std::move(merged);
    for (BinAmount& latest : latest_) latest.bin >>= 1U;
  }
}

void BinnedSums::AddTo(uint32_t key, uint64_t bin, double amount) {
  BinAmount& latest = latest_[key];
  if (latest.bin != bin) {
    if (latest.amount > 0) amounts_[{key, latest.bin}] += latest.amount;
    latest = {bin, 0};
  }
  latest.amount += amount;
}

void BinnedSums::Add(uint32_t key, TscRange when, double amount) {
  const uint64_t end = std::max(when.end.value, when.begin.value + 1);
  first_ = std::min(first_, when.begin.value >> shift_);
  last_ = std::max(last_, (end - 1) >> shift_);
  Shrink();
  if (key >= latest_.size()) latest_.resize(size_t{key} + 1);
  const double density = amount / static_cast<double>(end - when.begin.value);
  for (uint64_t at = when.begin.value; at < end;) {
    const uint64_t bin = at >> shift_;
    const uint64_t next = std::min(end, (bin + 1) << shift_);
    AddTo(key, bin, density * static_cast<double>(next - at));
    at = next;
  }
  Shrink();
}

std::vector<std::vector<BinAmount>> BinnedSums::ByKey(size_t keys) const {
  std::vector<std::vector<BinAmount>> all(keys);
  for (const Entry& entry : Entries()) all.at(entry.key).push_back({entry.bin, entry.amount});
  return all;
}

std::vector<BinnedSums::Entry> BinnedSums::Entries() const {
  std::vector<Entry> all;
  all.reserve(amounts_.size() + latest_.size());
  for (const auto& [at, amount] : amounts_) all.push_back({at.first, at.second, amount});
  for (uint32_t key = 0; key < latest_.size(); ++key) {
    if (latest_[key].amount > 0) all.push_back({key, latest_[key].bin, latest_[key].amount});
  }
  std::ranges::sort(all, [](const Entry& a, const Entry& b) {
    return std::tie(a.key, a.bin) < std::tie(b.key, b.bin);
  });
  // The latest bin of a key may also be among the amounts, when its amounts came out of order.
  size_t kept = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].key == all[kept].key && all[i].bin == all[kept].bin) {
      all[kept].amount += all[i].amount;
    } else {
      all[++kept] = all[i];
    }
  }
  if (!all.empty()) all.resize(kept + 1);
  return all;
}

}  // namespace xenoscope::correlate
