#include "cli/stat_sampled.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "cli/domain_names.h"
#include "recording/recording.h"
#include "sampler/perf/perf_events.h"
#include "sampler/recorder.h"
#include "sampler/vcpu/vcpu_calls.h"
#include "sampler/xen/host.h"
#include "sampler/xen/run_times.h"

namespace xenoscope::cli {
namespace {

// A directory that is removed with what is in it.
class ScratchDirectory {
 public:
  static absl::StatusOr<ScratchDirectory> Make() {
    std::error_code error;
    const std::filesystem::path root = std::filesystem::temp_directory_path(error);
    std::string path = (root / "xenoscope-stat.XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) {
      return ErrnoError(error ? error.value() : errno, "cannot make a directory in {}",
                        root.string());
    }
    return ScratchDirectory(std::move(path));
  }
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] std::string RecordingPath() const { return path_ + "/stat.xeno"; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The run times of vCPUs while samples are taken.
class RunTimeCounter {
 public:
  RunTimeCounter() {
    auto directory = sampler::DomainDirectory::Open();
    auto calls = sampler::OpenVcpuCalls();
    if (!directory.ok() || !calls.ok()) return;
    directory_ = *std::move(directory);
    calls_ = *std::move(calls);
  }

  void Begin() { begin_ = Read(); }
  void End() { end_ = Read(); }

  // Returns the total of each row of the domains; of all, if there are none.
  [[nodiscard]] profile::EventTotals Totals(profile::TotalsBy by,
                                            const std::vector<DomainId>& domains) const {
    profile::EventTotals totals;
    std::vector<profile::CountedPart> parts;
    for (const auto& [vcpu, ns] : end_) {
      const bool is_wanted =
          domains.empty() || std::ranges::find(domains, vcpu.domain) != domains.end();
      if (!is_wanted) continue;
      const auto before = begin_.find(vcpu);  // none: it is new
      const uint64_t ran = ns - (before == begin_.end() ? 0 : before->second);
      parts.push_back(
          {.domain = vcpu.domain, .vcpu = vcpu.vcpu, .count = static_cast<double>(ran)});
    }
    if (parts.empty()) return totals;
    totals.events.push_back({"run-time", true});
    AddCounted(parts, by, totals);
    return totals;
  }

 private:
  sampler::RunTimes Read() {
    if (calls_ == nullptr) return {};
    const auto domains = directory_->List();
    if (!domains.ok()) return {};
    return sampler::ReadRunTimes(*calls_, *domains).value_or(sampler::RunTimes());
  }

  std::unique_ptr<sampler::DomainDirectory> directory_;
  std::unique_ptr<sampler::VcpuCalls> calls_;
  sampler::RunTimes begin_;
  sampler::RunTimes end_;
};

}  // namespace

absl::StatusOr<SampledTotals> SampleTotals(const StatSampling& request) {
  XENOSCOPE_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Make());
  RunTimeCounter run_times;
  sampler::RecordRequest record;
  record.output = scratch.RecordingPath();
  record.written_by = "xenoscope " XENOSCOPE_VERSION;
  record.command = request.command;
  record.duration = request.duration;
  record.samples.emplace();
  record.samples->source = sampler::SourceKind::kXenoprof;
  record.samples->events = request.events;
  record.on_began = [&run_times] { run_times.Begin(); };
  record.on_ending = [&run_times] { run_times.End(); };
  XENOSCOPE_ASSIGN_OR_RETURN(sampler::RecordResult recorded,
                             sampler::Record(record, [](const sampler::Progress&) {}));
  XENOSCOPE_RETURN_IF_ERROR(recorded.status);
  SampledTotals sampled;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> domains,
                             ChooseDomains(&recorded.info, request.domains));
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::Recording recording,
                             recording::Recording::Open(record.output));
  XENOSCOPE_ASSIGN_OR_RETURN(sampled.totals,
                             profile::EstimateTotals(recording, request.by, domains));
  Append(run_times.Totals(request.by, domains), sampled.totals);
  sampled.info = std::move(recorded.info);
  sampled.notes = std::move(recorded.notes);
  if (recorded.command_exit) sampled.exit_status = recorded.command_exit->status;
  return sampled;
}

bool AreOfLinux(const std::vector<sampler::EventSpec>& events) {
  return std::ranges::all_of(events, [](const sampler::EventSpec& spec) {
    const auto event = sampler::ResolvePerfEvent(spec);
    return event.ok() && event->attributes.type == PERF_TYPE_SOFTWARE;
  });
}

}  // namespace xenoscope::cli
