#include "analysis/summary/device_accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace xenoscope::analysis {

using correlate::DeviceAccess;
using correlate::ExitContents;
using correlate::ExitKind;

namespace {

bool IsPort(ExitKind kind) { return kind == ExitKind::kPortRead || kind == ExitKind::kPortWrite; }
bool IsWrite(ExitKind kind) { return kind == ExitKind::kPortWrite || kind == ExitKind::kMmioWrite; }

// The tag of the remainder of a kind of access.
constexpr uint32_t kRemainder = 0x100;
TableKey Remainder(const TableKey& key) { return {0, key.tag | kRemainder}; }

}  // namespace

Stat& DeviceAccesses::At(const DeviceAccess& access, EntryBudget& budget) {
  const TableKey key{access.address, static_cast<uint32_t>(access.kind)};
  return stats_.At(key, Remainder(key), kMaxEntries, budget);
}

void DeviceAccesses::Add(const ExitContents& exit, EntryBudget& budget) {
  const uint32_t kept = std::min(exit.accesses, ExitContents::kMaxAccesses);
  for (uint32_t i = 0; i < kept; ++i) At(exit.access[i], budget).Add(exit.length);
  not_kept_ += exit.accesses - kept;
}

void DeviceAccesses::Prepend(DeviceAccesses& earlier, EntryBudget& budget) {
  not_kept_ += earlier.not_kept_;
  stats_.Prepend(
      earlier.stats_, kMaxEntries, budget, [](Stat& stat, const Stat& more) { stat.Merge(more); },
      Remainder);
}

void DeviceAccesses::Describe(Section& out) const {
  struct Entry {
    bool remainder;
    uint64_t address;
    ExitKind kind;
    const Stat* stat;
  };
  std::vector<Entry> entries;
  stats_.ForEach([&](const TableKey& key, const Stat& stat) {
    const auto kind = static_cast<ExitKind>(key.tag & (kRemainder - 1));
    entries.push_back({(key.tag & kRemainder) != 0, key.number, kind, &stat});
  });
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.remainder, a.address, a.kind) < std::tie(b.remainder, b.address, b.kind);
  });
  MetricGroup ports{"io_ports", "I/O ports", {}};
  MetricGroup mmio{"mmio", "MMIO addresses", {}};
  for (const Entry& entry : entries) {
    const std::string address =
        entry.remainder ? "(others)" : correlate::NumberName(entry.kind, entry.address);
    MetricRow row{fmt::format("{} {}", address, IsWrite(entry.kind) ? "write" : "read"), {}, {}};
    (IsPort(entry.kind) ? ports : mmio).rows.push_back(std::move(row.Add(entry.stat->Summary())));
  }
  if (not_kept_ > 0) {
    mmio.rows.push_back(
        MetricRow{"(more in one exit)", {}, {}}.Add("count", MetricUnit::kCount, not_kept_));
  }
  out.groups.push_back(std::move(ports));
  out.groups.push_back(std::move(mmio));
}

}  // namespace xenoscope::analysis
