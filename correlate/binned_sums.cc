#include "correlate/binned_sums.h"

#include <algorithm>

namespace xenoscope::correlate {
namespace {

// Sorts the amounts by bin, and adds those of one bin up in the order in which they came.
void CombineBins(std::vector<BinAmount>& amounts) {
  if (amounts.size() < 2) return;
  if (!std::ranges::is_sorted(amounts, {}, &BinAmount::bin)) {
    std::ranges::stable_sort(amounts, {}, &BinAmount::bin);
  }
  size_t last = 0;
  for (size_t i = 1; i < amounts.size(); ++i) {
    if (amounts[i].bin == amounts[last].bin) {
      amounts[last].amount += amounts[i].amount;
    } else {
      amounts[++last] = amounts[i];
    }
  }
  amounts.resize(last + 1);
}

}  // namespace

void BinnedSums::Combine() {
  entries_ = keys_ = 0;
  for (std::vector<BinAmount>& amounts : amounts_) {
    CombineBins(amounts);
    entries_ += amounts.size();
    if (!amounts.empty()) ++keys_;
  }
}

void BinnedSums::ShrinkAll() {
  const auto are_more = [this](size_t most) { return entries_ > most && last_ > first_; };
  if (are_more(max_entries_)) Combine();
  const size_t most = are_more(max_entries_) ? Target() : max_entries_;
  while (last_ - first_ >= max_bins_ || are_more(most)) {
    ++shift_;
    first_ >>= 1U;
    last_ >>= 1U;
    for (std::vector<BinAmount>& amounts : amounts_) {
      for (BinAmount& each : amounts) each.bin >>= 1U;
    }
    Combine();
  }
}

void BinnedSums::AddToBins(uint32_t key, TscRange when, double amount) {
  const uint64_t end = std::max(when.end.value, when.begin.value + 1);
  first_ = std::min(first_, when.begin.value >> shift_);
  last_ = std::max(last_, (end - 1) >> shift_);
  Shrink();
  if (key >= amounts_.size()) amounts_.resize(size_t{key} + 1);
  std::vector<BinAmount>& amounts = amounts_[key];
  const double density = amount / static_cast<double>(end - when.begin.value);
  for (uint64_t at = when.begin.value; at < end;) {
    const uint64_t bin = at >> shift_;
    const uint64_t next = std::min(end, (bin + 1) << shift_);
    if (amounts.empty() || amounts.back().bin != bin) {
      amounts.push_back({bin, 0});
      ++entries_;
    }
    amounts.back().amount += density * static_cast<double>(next - at);
    at = next;
  }
  Shrink();
}

std::vector<std::vector<BinAmount>> BinnedSums::ByKey(size_t keys) const {
  std::vector<std::vector<BinAmount>> all(amounts_);
  for (std::vector<BinAmount>& amounts : all) {
    CombineBins(amounts);
    std::erase_if(amounts, [](const BinAmount& each) { return each.amount == 0; });
  }
  all.resize(keys);
  return all;
}

}  // namespace xenoscope::correlate
