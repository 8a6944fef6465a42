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

constexpr GroupInfo kIoPortsGroup{"io_ports", "I/O ports", SectionLevel::kVcpu};
constexpr GroupInfo kMmioGroup{"mmio", "MMIO addresses", SectionLevel::kVcpu};

bool IsPort(ExitKind kind) { return kind == ExitKind::kPortRead || kind == ExitKind::kPortWrite; }
bool IsWrite(ExitKind kind) { return kind == ExitKind::kPortWrite || kind == ExitKind::kMmioWrite; }

// The tag of the remainder of a kind of access.
constexpr uint32_t kRemainder = 0x100;
TableKey Remainder(const TableKey& key) { return {0, key.tag | kRemainder}; }

}  // namespace

DeviceAccesses::Total& DeviceAccesses::At(const DeviceAccess& access, EntryBudget& budget) {
  const TableKey key{access.address, static_cast<uint32_t>(access.kind)};
  return totals_.At(key, Remainder(key), kMaxEntries, budget);
}

void DeviceAccesses::Add(const ExitContents& exit, const DeviceWaits& waits, EntryBudget& budget) {
  const uint32_t kept = std::min(exit.accesses, ExitContents::kMaxAccesses);
  for (uint32_t i = 0; i < kept; ++i) {
    Total& total = At(exit.access[i], budget);
    total.exits.Add(exit.length);
    if (i == 0) total.waits += waits;
  }
  not_kept_ += exit.accesses - kept;
}

void DeviceAccesses::Prepend(DeviceAccesses& earlier, EntryBudget& budget) {
  not_kept_ += earlier.not_kept_;
  totals_.Prepend(
      earlier.totals_, kMaxEntries, budget,
      [](Total& total, const Total& more) {
        total.exits.Merge(more.exits);
        total.waits += more.waits;
      },
      Remainder);
}

std::vector<GroupInfo> DeviceAccesses::Groups() { return {kIoPortsGroup, kMmioGroup}; }

void DeviceAccesses::Describe(Section& out) const {
  struct Entry {
    bool remainder;
    uint64_t address;
    ExitKind kind;
    const Total* total;
  };
  std::vector<Entry> entries;
  totals_.ForEach([&](const TableKey& key, const Total& total) {
    const auto kind = static_cast<ExitKind>(key.tag & (kRemainder - 1));
    entries.push_back({(key.tag & kRemainder) != 0, key.number, kind, &total});
  });
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.remainder, a.address, a.kind) < std::tie(b.remainder, b.address, b.kind);
  });
  MetricGroup& ports = out.AddGroup(kIoPortsGroup);
  MetricGroup& mmio = out.AddGroup(kMmioGroup);
  for (const Entry& entry : entries) {
    const std::string address =
        entry.remainder ? "(others)" : correlate::NumberName(entry.kind, entry.address);
    MetricRow row{fmt::format("{} {}", address, IsWrite(entry.kind) ? "write" : "read"), {}, {}};
    row.Add(entry.total->exits.Summary());
    if (const DeviceWaits& waits = entry.total->waits; waits.count > 0) {
      row.Add("waits", MetricUnit::kCount, waits.count)
          .Add("waited", MetricUnit::kCycles, waits.cycles);
    }
    (IsPort(entry.kind) ? ports : mmio).rows.push_back(std::move(row));
  }
  if (not_kept_ > 0) {
    mmio.rows.push_back(
        MetricRow{"(more in one exit)", {}, {}}.Add("count", MetricUnit::kCount, not_kept_));
  }
}

}  // namespace xenoscope::analysis
