#include "trace/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace xenoscope::trace {
namespace {

constexpr size_t kFigureCount = static_cast<size_t>(Figure::kCount);

constexpr std::array kRunstateNeeds = {Event::kRunstateChange};
constexpr std::array kExitNeeds = {Event::kRunstateChange, Event::kHvmVmexit};
constexpr std::array kContentNeeds = {Event::kRunstateChange, Event::kHvmVmexit, Event::kHvmCpuid};
constexpr std::array kShadowNeeds = {Event::kRunstateChange, Event::kHvmVmexit,
                                     Event::kShadowEmulate};
constexpr std::array kPvNeeds = {Event::kRunstateChange, Event::kPvHypercallV2};
constexpr std::array kSubcallNeeds = {Event::kRunstateChange, Event::kPvHypercallSubcall};
constexpr std::array kNoteNeeds = {Event::kSchedSwitchInfnext};
constexpr std::array kSchedulerNeeds = {Event::kCsched2CreditReset};
constexpr std::array kGuestNeeds = {Event::kRunstateChange, Event::kGuest};
constexpr std::array kDeviceNeeds = {Event::kRunstateChange, Event::kHvmEmulHpetStartTimer};
constexpr std::array kMemoryNeeds = {Event::kMemPageGrantMap};
constexpr std::array kPowerNeeds = {Event::kPmIdleEntry};
constexpr std::array kIrqNeeds = {Event::kHwIrqHandled};

// In the order of Figure.
constexpr std::array<FigureInfo, kFigureCount> kFigures = {{
    {"runstates of vCPUs", kRunstateNeeds, true},
    {"VM exits", kExitNeeds, true},
    {"what VM exits were about (CPUID leaves, MSRs, ports, MMIO addresses, hypercalls)",
     kContentNeeds, true},
    {"injected interrupts", kContentNeeds, false},
    {"work for shadow page tables", kShadowNeeds, true},
    {"PV hypercalls and traps", kPvNeeds, false},
    {"PV hypercalls inside multicalls", kSubcallNeeds, false},
    {"wakes, blocks, yields and slices", kNoteNeeds, false},
    {"the scheduler's own events", kSchedulerNeeds, false},
    {"guests' own events", kGuestNeeds, false},
    {"timers and interrupts of emulated devices", kDeviceNeeds, false},
    {"grants and memory", kMemoryNeeds, false},
    {"idle states and frequencies", kPowerNeeds, false},
    {"IRQs", kIrqNeeds, false},
    {"lost records", {}, false},  // Xen records losses with every mask
}};

constexpr auto kAll = [] {
  std::array<Figure, kFigureCount> all{};
  for (size_t i = 0; i < kFigureCount; ++i) all[i] = static_cast<Figure>(i);
  return all;
}();

constexpr size_t kReportCount =
    static_cast<size_t>(std::ranges::count_if(kFigures, &FigureInfo::in_report));

constexpr auto kOfReport = [] {
  std::array<Figure, kReportCount> some{};
  size_t count = 0;
  for (size_t i = 0; i < kFigureCount; ++i) {
    if (kFigures[i].in_report) some[count++] = static_cast<Figure>(i);
  }
  return some;
}();

// Returns whether a mask has all figures of `wanted` that the recorded one has.
bool KeepsAll(EventMask mask, EventMask recorded, std::span<const Figure> wanted) {
  return std::ranges::all_of(
      wanted, [&](Figure figure) { return !Has(recorded, figure) || Has(mask, figure); });
}

}  // namespace

const FigureInfo& Info(Figure figure) { return kFigures.at(static_cast<size_t>(figure)); }

bool Has(EventMask mask, Figure figure) {
  return std::ranges::all_of(Info(figure).needs,
                             [mask](Event event) { return mask.Includes(event); });
}

std::span<const Figure> AllFigures() { return kAll; }
std::span<const Figure> ReportFigures() { return kOfReport; }

std::vector<std::string_view> MissingFigures(EventMask mask, std::span<const Figure> wanted) {
  std::vector<std::string_view> names;
  for (const Figure figure : wanted) {
    if (!Has(mask, figure)) names.push_back(Info(figure).name);
  }
  return names;
}

std::string MissingFiguresNote(EventMask mask, std::string_view mask_text,
                               std::span<const Figure> wanted) {
  std::vector<std::string> groups;
  std::vector<Figure> named;
  for (const NamedMask& preset : kMaskPresets) {
    if (!KeepsAll(preset.mask, mask, wanted)) continue;
    std::vector<std::string_view> names;
    for (const Figure figure : wanted) {
      const bool is_named = std::ranges::find(named, figure) != named.end();
      if (is_named || Has(mask, figure) || !Has(preset.mask, figure)) continue;
      named.push_back(figure);
      names.push_back(Info(figure).name);
    }
    if (names.empty()) continue;
    groups.push_back(
        fmt::format("{} (--trace-events {} records them)", fmt::join(names, "; "), preset.name));
  }
  if (groups.empty()) return "";
  return fmt::format("Recorded with --trace-events {}, this trace does not show: {}.", mask_text,
                     fmt::join(groups, "; "));
}

}  // namespace xenoscope::trace
