#include "analysis/summary/eip_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mode.h"

namespace xenoscope::analysis {

using correlate::ExitContents;
using correlate::ExitKind;
using correlate::kNoVector;

namespace {

constexpr GroupInfo kEmulateEipGroup{"emulate_eip", "Emulated instructions, by address",
                                     SectionLevel::kVcpu, GroupLayout::kLongList};
constexpr GroupInfo kPortEipGroup{"port_eip", "Instructions that accessed ports, by address",
                                  SectionLevel::kVcpu, GroupLayout::kLongList};
constexpr GroupInfo kInterruptEipGroup{"interrupt_eip",
                                       "Interrupted by the host's interrupts, by address",
                                       SectionLevel::kVcpu, GroupLayout::kLongList};

constexpr size_t kListed = 64;
constexpr uint32_t kNoVectorTag = 0x100;
constexpr int kPortBits = 16;
constexpr uint32_t kPortMask = (1U << kPortBits) - 1;

bool IsPortAccess(const ExitContents& exit) {
  return exit.kind == ExitKind::kPortRead || exit.kind == ExitKind::kPortWrite;
}

// The guest's mode is not recorded. 64-bit kernels live in the upper half of the address space. A
// 32-bit guest's kernel is taken for user mode, and the resolver says so.
Mode ModeOf(Address address) { return address >> 63 != 0 ? Mode::kKernel : Mode::kUser; }

}  // namespace

void EipList::Prepend(EipList& earlier, EntryBudget& budget) {
  totals_.Prepend(
      earlier.totals_, kMaxEntries, budget, [](Total& total, const Total& more) { total += more; },
      [](const TableKey& /*key*/) { return kOthers; });
}

void EipLists::Prepend(EipLists& earlier, EntryBudget& budget) {
  emulated_.Prepend(earlier.emulated_, budget);
  ports_.Prepend(earlier.ports_, budget);
  interrupted_.Prepend(earlier.interrupted_, budget);
}

bool EipLists::Takes(const ExitContents& exit) {
  return exit.emulated || IsPortAccess(exit) || exit.kind == ExitKind::kInterrupt;
}

void EipLists::Add(const ExitContents& exit, EntryBudget& budget) {
  if (exit.emulated) emulated_.Add(exit.rip, static_cast<uint32_t>(exit.kind), exit.length, budget);
  if (IsPortAccess(exit)) {
    const auto kind = static_cast<uint32_t>(exit.kind);
    const auto port = static_cast<uint32_t>(exit.number & kPortMask);
    ports_.Add(exit.rip, kind << kPortBits | port, exit.length, budget);
  }
  if (exit.kind == ExitKind::kInterrupt) {
    const auto vector =
        exit.number == kNoVector ? kNoVectorTag : static_cast<uint32_t>(exit.number & 0xff);
    interrupted_.Add(exit.rip, vector, exit.length, budget);
  }
}

void EipList::Describe(DomainId domain, const TraceMetadata& metadata,
                       absl::FunctionRef<std::string(uint32_t tag)> name,
                       MetricGroup& group) const {
  std::vector<std::pair<TableKey, Total>> sorted;
  Total others;
  totals_.ForEach([&](const TableKey& key, const Total& total) {
    if (key == kOthers) {
      others = total;
    } else {
      sorted.emplace_back(key, total);
    }
  });
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second.count, a.first.number, a.first.tag) <
           std::tie(a.second.count, b.first.number, b.first.tag);
  });
  const auto add = [&](std::string row_name, const Total& total) -> MetricRow& {
    MetricRow& row = group.rows.emplace_back(MetricRow{std::move(row_name), {}, {}});
    row.Add("count", MetricUnit::kCount, total.count);
    if (total.cycles > 0) row.Add("cycles", MetricUnit::kCycles, total.cycles);
    return row;
  };
  for (size_t i = 0; i < sorted.size(); ++i) {
    const auto& [key, total] = sorted[i];
    if (i >= kListed) {
      others += total;
      continue;
    }
    MetricRow& row = add(fmt::format("0x{:x}, {}", key.number, name(key.tag)), total);
    if (metadata.resolver == nullptr) continue;
    const Function& function = metadata.resolver->Describe(
        metadata.resolver->Resolve(domain, ModeOf(key.number), key.number));
    row.Add("symbol", function.name).Add("image", function.image);
  }
  if (others.count > 0) add("(others)", others);
}

std::vector<GroupInfo> EipLists::Groups() {
  return {kEmulateEipGroup, kPortEipGroup, kInterruptEipGroup};
}

void EipLists::Describe(DomainId domain, const TraceMetadata& metadata, Section& out) const {
  emulated_.Describe(
      domain, metadata,
      [](uint32_t tag) { return std::string(ToString(static_cast<ExitKind>(tag))); },
      out.AddGroup(kEmulateEipGroup));
  ports_.Describe(
      domain, metadata,
      [](uint32_t tag) {
        const auto kind = static_cast<ExitKind>(tag >> kPortBits);
        return fmt::format("{} {}", ToString(kind), NumberName(kind, tag & kPortMask));
      },
      out.AddGroup(kPortEipGroup));
  interrupted_.Describe(
      domain, metadata,
      [](uint32_t tag) {
        return NumberName(ExitKind::kInterrupt, tag == kNoVectorTag ? kNoVector : tag);
      },
      out.AddGroup(kInterruptEipGroup));
}

}  // namespace xenoscope::analysis
