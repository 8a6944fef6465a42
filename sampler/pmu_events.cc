#include "sampler/pmu_events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "base/spelling.h"
#include "sampler/libpfm.h"

namespace xenoscope::sampler {
namespace {

constexpr uint64_t kMaxXenoprofCode = 0xff;
// Retired instructions, of AMD (BIOS and Kernel Developer's Guides, PMCx0C0) and of Intel
// (architectural event Instructions Retired; Software Developer's Manual, volume 3).
constexpr uint32_t kInstructionsRetired = 0xc0;
// Samples a second. A prime: 1000 would be in step with the ticks of guests.
constexpr uint64_t kDefaultRate = 1013;
// The values of HZ that Linux can be built with (kernel/Kconfig.hz).
constexpr std::array kTickRates = {100, 250, 300, 1000};
// Samples are in step if each tick finds them less than this part of a period further on.
constexpr double kMinDrift = 1e-3;

std::vector<pfm_pmu_info_t> CorePmus(const Libpfm& libpfm, bool only_present) {
  std::vector<pfm_pmu_info_t> found;
  for (int i = PFM_PMU_NONE; i < PFM_PMU_MAX; ++i) {
    pfm_pmu_info_t info{};
    info.size = sizeof info;
    const auto pmu = static_cast<pfm_pmu_t>(i);
    if (libpfm.pmu_info(pmu, &info) != PFM_SUCCESS || info.type != PFM_PMU_TYPE_CORE) continue;
    // libpfm4 counts the pseudo-PMUs of perf_events as core PMUs, but they have no codes.
    if (absl::StartsWith(info.name, "perf")) continue;
    if (!only_present || info.is_present != 0) found.push_back(info);
  }
  return found;
}

std::vector<pfm_event_info_t> EventsOf(const Libpfm& libpfm, const pfm_pmu_info_t& pmu) {
  std::vector<pfm_event_info_t> events;
  for (int i = pmu.first_event; i >= 0; i = libpfm.next_event(i)) {
    pfm_event_info_t info{};
    info.size = sizeof info;
    if (libpfm.event_info(i, PFM_OS_NONE, &info) != PFM_SUCCESS) break;
    events.push_back(info);
  }
  return events;
}

// Encodes an event as in an event select register (AMD and Intel alike): event in bits 0 to 7 and,
// on AMD, 32 to 35; unit mask in bits 8 to 15.
absl::StatusOr<PmuEvent> Encode(const Libpfm& libpfm, const std::string& name) {
  uint64_t* codes = nullptr;
  int count = 0;
  const int result =
      libpfm.event_encoding(name.c_str(), PFM_PLM0 | PFM_PLM3, nullptr, nullptr, &codes, &count);
  const std::unique_ptr<uint64_t, void (*)(void*)> owner(codes, std::free);
  if (result != PFM_SUCCESS || count < 1) {
    return NotFoundError("event '{}': {}{}; `xenoscope events` lists the names", name,
                         libpfm.error_text(result),
                         result == PFM_ERR_NOTFOUND ? SuggestEvent(name) : "");
  }
  PmuEvent event;
  event.code = static_cast<uint32_t>((codes[0] & 0xff) | ((codes[0] >> 24) & 0xf00));
  event.unit_mask = static_cast<uint32_t>((codes[0] >> 8) & 0xff);
  return event;
}

absl::StatusOr<PmuEvent> LookUpEvent(const std::string& name) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Libpfm libpfm, Libpfm::Start());
  if (absl::StrContains(name, "::")) return Encode(libpfm, name);
  const auto present = CorePmus(libpfm, /*only_present=*/true);
  if (present.empty()) {
    return NotFoundError(
        "event '{}': libpfm4 does not know this processor; give a full name (`xenoscope events {}`)"
        " or a raw code, -e r0076:100000",
        name, name);
  }
  absl::StatusOr<PmuEvent> event = absl::UnknownError("");
  for (const pfm_pmu_info_t& pmu : present) {
    event = Encode(libpfm, fmt::format("{}::{}", pmu.name, name));
    if (event.ok()) return event;
  }
  return event;
}

}  // namespace

std::string SuggestEvent(std::string_view name) {
  const size_t colons = name.find("::");
  const bool has_pmu = colons != std::string_view::npos;
  const std::string_view event = has_pmu ? name.substr(colons + 2) : name;
  std::vector<std::string> names = {"cycles", "cpu-clock"};
  const absl::StatusOr<Libpfm> libpfm = Libpfm::Start();
  if (!libpfm.ok()) return "";
  for (const pfm_pmu_info_t& pmu : CorePmus(*libpfm, /*only_present=*/!has_pmu)) {
    if (has_pmu && name.substr(0, colons) != pmu.name) continue;
    for (const pfm_event_info_t& info : EventsOf(*libpfm, pmu)) {
      names.push_back(absl::AsciiStrToLower(info.name));
    }
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return SpellingHint(absl::AsciiStrToLower(std::string(event.substr(0, event.find(':')))), views);
}

absl::StatusOr<PmuEvent> ResolvePmuEvent(const EventSpec& spec, std::string_view cpu_type,
                                         uint64_t cpu_hz) {
  PmuEvent event;
  const bool cycles = spec.name == "cycles" || spec.name == "cpu-cycles";
  const PmuEvent of_default = DefaultEvent(cpu_type, cpu_hz);
  if (cycles) {
    event = of_default;
  } else if (spec.name == "instructions") {
    event = {"instructions", kInstructionsRetired, 0, of_default.period};
  } else if (const auto raw = RawCode(spec.name)) {
    event.code = *raw & 0xff;
    event.unit_mask = *raw >> 8;
  } else {
    XENOSCOPE_ASSIGN_OR_RETURN(event, LookUpEvent(spec.name));
  }
  if (event.code > kMaxXenoprofCode) {
    // Xen 4.17 ORs bits 8 to 11 of an AMD event into the low ones (op_model_athlon.c).
    return InvalidError(
        "event '{}' has the code {:#x}, and xenoprof cannot count codes above 0xff: choose another "
        "event",
        spec.name, event.code);
  }
  event.name = spec.name;
  event.user = spec.user;
  event.kernel = spec.kernel;
  event.hypervisor = spec.hypervisor;
  const bool is_cycles = event.code == of_default.code && event.unit_mask == of_default.unit_mask;
  if (spec.period) {
    event.period = *spec.period;
  } else if (is_cycles) {
    event.period = spec.hz ? cpu_hz / *spec.hz : of_default.period;
  } else if (spec.name == "instructions" && !spec.hz) {
    event.period = of_default.period;
  } else {
    return InvalidError("event '{}' needs a period with xenoprof, which has no rates: {}:100000",
                        spec.name, spec.name);
  }
  if (event.period < kMinPeriod || event.period > kMaxPeriod) {
    return InvalidError("event '{}': the period {} must be {} to {}", spec.name, event.period,
                        kMinPeriod, kMaxPeriod);
  }
  return event;
}

PmuEvent DefaultEvent(std::string_view xenoprof_cpu_type, uint64_t cpu_hz) {
  const uint64_t period = std::clamp((cpu_hz / kDefaultRate) | 1, kMinPeriod, kMaxPeriod);
  // AMD: CPU Clocks not Halted, 76h, in all families (BIOS and Kernel Developer's Guides).
  if (absl::StartsWith({xenoprof_cpu_type.data(), xenoprof_cpu_type.size()}, "x86-64/")) {
    return {"cpu_clk_unhalted", 0x76, 0, period};
  }
  // Intel: architectural event UnHalted Core Cycles, 3Ch (Software Developer's Manual, volume 3).
  return {"unhalted_core_cycles", 0x3c, 0, period};
}

int TickRateInStep(uint64_t period, uint64_t cpu_hz) {
  for (const int rate : kTickRates) {
    const double tick = static_cast<double>(cpu_hz) / rate;
    const double longer = std::max(tick, static_cast<double>(period));
    const double shorter = std::min(tick, static_cast<double>(period));
    const double times = longer / shorter;
    if (std::abs(times - std::round(times)) < kMinDrift) return rate;
  }
  return 0;
}

absl::StatusOr<std::vector<EventDescription>> ListEvents(std::string_view word) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Libpfm libpfm, Libpfm::Start());
  auto pmus = CorePmus(libpfm, /*only_present=*/true);
  const bool known = !pmus.empty();
  if (!known) pmus = CorePmus(libpfm, /*only_present=*/false);
  std::vector<EventDescription> events;
  for (const pfm_pmu_info_t& pmu : pmus) {
    for (const pfm_event_info_t& info : EventsOf(libpfm, pmu)) {
      std::string name = absl::AsciiStrToLower(info.name);
      if (!known) name = fmt::format("{}::{}", pmu.name, name);
      std::string text = info.desc == nullptr ? "" : info.desc;
      if (!ContainsWord(name, text, word)) continue;
      events.push_back({std::move(name), std::move(text), info.code <= kMaxXenoprofCode});
    }
  }
  return events;
}

bool ContainsWord(std::string_view name, std::string_view text, std::string_view word) {
  const std::string wanted = absl::AsciiStrToLower(std::string(word));
  const auto has = [&wanted](std::string_view where) {
    return absl::AsciiStrToLower(std::string(where)).find(wanted) != std::string::npos;
  };
  return has(name) || has(text);
}

}  // namespace xenoscope::sampler
