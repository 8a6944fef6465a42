#include "sampler/pmu_events.h"

#include <perfmon/pfmlib.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/error.h"
#include "base/nearest.h"

namespace xenoscope::sampler {
namespace {

absl::Status Initialize() {
  // Fully named events of other processors can then be encoded too.
  static const int result = [] {
    setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
    return pfm_initialize();
  }();
  if (result == PFM_SUCCESS) return absl::OkStatus();
  return InternalError("libpfm4 does not start: {}", pfm_strerror(result));
}

template <typename T>
std::optional<T> Number(std::string_view text, int base) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<pfm_pmu_info_t> CorePmus(bool only_present) {
  std::vector<pfm_pmu_info_t> found;
  for (int i = PFM_PMU_NONE; i < PFM_PMU_MAX; ++i) {
    pfm_pmu_info_t info{};
    info.size = sizeof info;
    const auto pmu = static_cast<pfm_pmu_t>(i);
    if (pfm_get_pmu_info(pmu, &info) != PFM_SUCCESS || info.type != PFM_PMU_TYPE_CORE) continue;
    // Pseudo-PMUs of perf_events are core PMUs to libpfm4 and have no codes.
    if (absl::StartsWith(info.name, "perf")) continue;
    if (!only_present || info.is_present != 0) found.push_back(info);
  }
  return found;
}

// "; did you mean NAME?", of the events of the PMU in "PMU::EVENT:MASK"; nothing when none is near.
std::string Suggestion(std::string_view full_name) {
  const size_t colons = full_name.find("::");
  const std::string_view pmu = full_name.substr(0, colons);
  const std::string_view event = full_name.substr(colons + 2);
  const auto pmus = CorePmus(/*only_present=*/false);
  const auto found = std::ranges::find_if(
      pmus, [pmu](const pfm_pmu_info_t& info) { return std::string_view(info.name) == pmu; });
  if (found == pmus.end()) return "";
  std::vector<std::string> names;
  for (int i = found->first_event; i >= 0; i = pfm_get_event_next(i)) {
    pfm_event_info_t info{};
    info.size = sizeof info;
    if (pfm_get_event_info(i, PFM_OS_NONE, &info) != PFM_SUCCESS) break;
    names.push_back(absl::AsciiStrToLower(info.name));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return DidYouMean(absl::AsciiStrToLower(std::string(event.substr(0, event.find(':')))), views);
}

// The code of an event select register (AMD and Intel alike): event in bits 0 to 7 and, on AMD, 32
// to 35; unit mask in bits 8 to 15.
absl::StatusOr<PmuEvent> Encode(const std::string& name) {
  uint64_t* codes = nullptr;
  int count = 0;
  const int result =
      pfm_get_event_encoding(name.c_str(), PFM_PLM0 | PFM_PLM3, nullptr, nullptr, &codes, &count);
  const std::unique_ptr<uint64_t, void (*)(void*)> owner(codes, std::free);
  if (result != PFM_SUCCESS || count < 1) {
    return NotFoundError("event '{}': {}{}; `xenoscope events` lists the names", name,
                         pfm_strerror(result), result == PFM_ERR_NOTFOUND ? Suggestion(name) : "");
  }
  PmuEvent event;
  event.code = static_cast<uint32_t>((codes[0] & 0xff) | ((codes[0] >> 24) & 0xf00));
  event.unit_mask = static_cast<uint32_t>((codes[0] >> 8) & 0xff);
  return event;
}

absl::StatusOr<PmuEvent> Look(const std::string& name) {
  XENOSCOPE_RETURN_IF_ERROR(Initialize());
  if (absl::StrContains(name, "::")) return Encode(name);
  const auto present = CorePmus(/*only_present=*/true);
  if (present.empty()) {
    return NotFoundError(
        "event '{}': libpfm4 does not know this processor; give a full name (`xenoscope events {}`)"
        " or a raw code, -e r0076:100000",
        name, name);
  }
  absl::StatusOr<PmuEvent> event = absl::UnknownError("");
  for (const pfm_pmu_info_t& pmu : present) {
    event = Encode(fmt::format("{}::{}", pmu.name, name));
    if (event.ok()) return event;
  }
  return event;
}

}  // namespace

absl::StatusOr<PmuEvent> ParseEvent(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto period =
      colon == std::string_view::npos ? std::nullopt : Number<uint64_t>(text.substr(colon + 1), 10);
  if (!period || colon == 0) {
    return InvalidError("event '{}' has no period: give NAME:PERIOD, as cpu_clk_unhalted:100000",
                        text);
  }
  if (*period < kMinPeriod || *period > kMaxPeriod) {
    return InvalidError("event '{}': the period must be {} to {}", text, kMinPeriod, kMaxPeriod);
  }
  const std::string name(text.substr(0, colon));
  absl::StatusOr<PmuEvent> event = PmuEvent{};
  const auto raw = name.size() == 5 && name[0] == 'r'
                       ? Number<uint32_t>(std::string_view(name).substr(1), 16)
                       : std::nullopt;
  if (raw) {
    event->code = *raw & 0xff;
    event->unit_mask = *raw >> 8;
  } else {
    event = Look(name);
    XENOSCOPE_RETURN_IF_ERROR(event.status());
  }
  if (event->code > 0xff) {
    // Xen 4.17 ORs bits 8 to 11 of an AMD event into the low ones (op_model_athlon.c).
    return InvalidError(
        "event '{}' has the code {:#x}, and xenoprof programs codes above 0xff "
        "wrongly: choose another",
        text, event->code);
  }
  event->name = name;
  event->period = *period;
  return event;
}

PmuEvent DefaultEvent(std::string_view xenoprof_cpu_type, uint64_t cpu_hz) {
  const uint64_t period = std::clamp(cpu_hz / 1000, kMinPeriod, kMaxPeriod);
  // AMD: CPU Clocks not Halted, 76h, of every family (BIOS and Kernel Developer's Guides).
  if (absl::StartsWith({xenoprof_cpu_type.data(), xenoprof_cpu_type.size()}, "x86-64/")) {
    return {"cpu_clk_unhalted", 0x76, 0, period};
  }
  // Intel: architectural event UnHalted Core Cycles, 3Ch (Software Developer's Manual, volume 3).
  return {"unhalted_core_cycles", 0x3c, 0, period};
}

absl::StatusOr<std::vector<EventDescription>> ListEvents(std::string_view filter) {
  XENOSCOPE_RETURN_IF_ERROR(Initialize());
  auto pmus = CorePmus(/*only_present=*/true);
  const bool known = !pmus.empty();
  if (!known) pmus = CorePmus(/*only_present=*/false);
  const std::string wanted = absl::AsciiStrToLower(std::string(filter));
  std::vector<EventDescription> events;
  for (const pfm_pmu_info_t& pmu : pmus) {
    for (int i = pmu.first_event; i >= 0; i = pfm_get_event_next(i)) {
      pfm_event_info_t info{};
      info.size = sizeof info;
      if (pfm_get_event_info(i, PFM_OS_NONE, &info) != PFM_SUCCESS) break;
      std::string name = absl::AsciiStrToLower(info.name);
      if (!known) name = fmt::format("{}::{}", pmu.name, name);
      if (name.find(wanted) == std::string::npos) continue;
      events.push_back({std::move(name), info.desc == nullptr ? "" : info.desc});
    }
  }
  return events;
}

}  // namespace xenoscope::sampler
