#include "report/profile/changes.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace xenoscope::report {
namespace {

using recording::DomainChange;
using Kind = DomainChange::Kind;

constexpr size_t kMaxPerLine = 8;

std::string What(const DomainChange& change) {
  const bool is_of_vcpu = change.kind == Kind::kVcpuOnline || change.kind == Kind::kVcpuOffline;
  const std::string vcpu =
      is_of_vcpu && change.vcpu ? fmt::format("vCPU {} ", change.vcpu->value) : "";
  return fmt::format("{}{}", vcpu, ChangeText(change.kind));
}

}  // namespace

std::string_view ChangeText(Kind kind) {
  switch (kind) {
    case Kind::kCreated:
      return "created";
    case Kind::kDestroyed:
      return "destroyed";
    case Kind::kPaused:
      return "paused";
    case Kind::kUnpaused:
      return "unpaused";
    case Kind::kSuspended:
      return "suspended";
    case Kind::kResumed:
      return "resumed";
    case Kind::kPoweredOff:
      return "powered off";
    case Kind::kRebooted:
      return "rebooted";
    case Kind::kCrashed:
      return "crashed";
    case Kind::kVcpuOnline:
      return "online";
    case Kind::kVcpuOffline:
      return "offline";
    case Kind::kUnknown:
      break;
  }
  return "changed in a way that this version of xenoscope does not know";
}

std::vector<std::string> ChangeLines(const recording::RecordingInfo& info) {
  const Clock clock =
      info.host.clock_hz == 0 ? Clock() : Clock{info.host.clock_hz, ClockSource::kRecorded};
  std::map<DomainId, std::pair<std::string, size_t>> lines;  // text, and number of changes left out
  std::map<DomainId, size_t> counts;
  for (const DomainChange& change : info.changes) {
    auto& [line, left_out] = lines[change.domain];
    if (++counts[change.domain] > kMaxPerLine) {
      ++left_out;
      continue;
    }
    // A change between the start of the trace and the start of sampling counts as at 0 s.
    const double at =
        change.when.end > info.started ? clock.Seconds(change.when.end - info.started) : 0;
    line += fmt::format("{}{} at {:.1f} s", line.empty() ? "" : ", ", What(change), at);
  }
  std::vector<std::string> result;
  for (const auto& [id, line] : lines) {
    const recording::DomainInfo* domain = info.Domain(id);
    const bool named = domain != nullptr && !domain->name.empty();
    const uint64_t left_out = line.second + (domain == nullptr ? 0 : domain->changes_left_out);
    const std::string more = left_out == 0 ? "" : fmt::format(", and {} more", left_out);
    result.push_back(
        named ? fmt::format("{} ({}): {}{}", domain->name, ToString(id), line.first, more)
              : fmt::format("{}: {}{}", ToString(id), line.first, more));
  }
  return result;
}

}  // namespace xenoscope::report
