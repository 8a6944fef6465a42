#include "cli/report_with_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cli/annotated_code.h"
#include "cli/kernel_traces.h"
#include "cli/output.h"
#include "cli/report_findings.h"
#include "correlate/stacks.h"
#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "profile/code_lines.h"
#include "profile/pipeline_options.h"
#include "report/export/firefox.h"
#include "report/export/perfetto.h"
#include "report/export/perfetto_sched.h"
#include "report/export/perfetto_threads.h"
#include "report/html/page.h"
#include "report/html/page_code.h"
#include "report/html/page_exits.h"
#include "report/html/page_flame.h"
#include "report/html/page_samples.h"
#include "report/html/page_threads.h"
#include "report/html/page_timeline.h"

namespace xenoscope::cli {
namespace {

// The maximum of functions whose code is looked for. Most of Xen's and kernels' have none here.
constexpr size_t kMaxCodeFunctions = 500;

// Returns the code of the functions with most samples. `by_code` are the samples of the profile by
// CodeColumns.
report::PageCode CodeOf(const ProfileSource& source, const ProfileOptions& request,
                        const report::ProfileReport& profile,
                        const correlate::ProfileResult& by_code) {
  const CodeOptions options{.sources = SourceDirectories({}, request.symbols)};
  std::vector<SampledFunction> functions =
      SampledFunctions(by_code.rows, [](const correlate::ProfileRow& /*row*/) { return true; });
  functions.resize(std::min(functions.size(), kMaxCodeFunctions));
  report::PageCode code;
  for (const SampledFunction& function : functions) {
    if (!code.HasRoom()) break;
    const std::vector<std::string> exits = ExitsOf(profile, {&function, 1});
    code.Add(report::DomainLabel(profile, function.domain),
             Annotate(source, profile, function, exits, options));
  }
  return code;
}

// Says on stderr that Perfetto would take no part of a file with CPUs of such numbers.
void WarnOfCpus(uint64_t left_out) {
  if (left_out == 0) return;
  fmt::print(stderr,
             "xenoscope: {} events of CPUs from number {} on are left out: Perfetto takes no file "
             "with them; their runs are slices only\n",
             left_out, report::PerfettoSched::kMaxCpus);
}

// Puts the threads of which the recording has kernels' events into a Perfetto trace, by a pass of
// its own over both: it takes them from their begin, and needs their names before.
absl::Status PutThreads(const ProfileSource& source, const report::ProfileReport& out,
                        report::PerfettoWriter& writer) {
  if (!source.recording()) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const KernelTraces kernels,
                             OpenKernelTraces(*source.recording(), source.trace()));
  if (kernels.traces.empty()) return absl::OkStatus();
  std::vector<guests::ThreadStates> named = ThreadsOf(kernels);
  XENOSCOPE_RETURN_IF_ERROR(guests::FollowThreads(named, source.trace()).status());
  report::PerfettoThreads threads(
      named, writer.packets(), [&out](DomainId domain) { return report::DomainLabel(out, domain); },
      [&writer](VcpuRef vcpu) { return writer.TrackOf(vcpu); });
  std::vector<guests::ThreadStates> shown = ThreadsOf(kernels);
  for (guests::ThreadStates& domain : shown) domain.SetObserver(&threads);
  XENOSCOPE_RETURN_IF_ERROR(guests::FollowThreads(shown, source.trace()).status());
  WarnOfCpus(threads.left_out());
  return threads.Finish();
}

// Puts these threads into the page's timeline, which shows the range. The trace is read once more.
absl::Status AddThreads(const ProfileSource& source, const report::ProfileReport& out,
                        TscRange shown, nlohmann::ordered_json& timeline) {
  if (!source.recording()) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const KernelTraces kernels,
                             OpenKernelTraces(*source.recording(), source.trace()));
  if (kernels.traces.empty()) return absl::OkStatus();
  std::vector<guests::ThreadStates> domains = ThreadsOf(kernels);
  report::PageThreads threads(domains, shown);
  for (guests::ThreadStates& domain : domains) domain.SetObserver(&threads);
  XENOSCOPE_RETURN_IF_ERROR(guests::FollowThreads(domains, source.trace()).status());
  XENOSCOPE_ASSIGN_OR_RETURN(timeline["threads"], threads.ToJson([&out](DomainId domain) {
    return report::DomainLabel(out, domain);
  }));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> HtmlReport(const ProfileSource& source, const ProfileOptions& request,
                                       profile::ProfileColumns columns,
                                       const std::vector<report::RowFilter>& filters,
                                       const report::ProfileFormatOptions& options,
                                       report::ProfileReport& out) {
  const bool to_end = source.trace() != nullptr && !request.to;
  report::PageTimeline timeline(out, source.Origin(), to_end ? source.trace()->bytes().size() : 0);
  report::PageSamples samples(source.symbols());
  std::vector<correlate::Dimension> flame_columns = report::PageColumns(columns.by);
  report::AddFilterColumns(filters, flame_columns);
  columns.further_by = {std::move(flame_columns)};
  const bool with_code = filters.empty();
  if (with_code) columns.further_by.push_back(CodeColumns(/*by_exit=*/true));
  FindingsPass findings(request, FindingsDetail::kQuick);
  correlate::PlacingObservers observers = findings.observers();
  observers.trace.push_back(&timeline);
  observers.samples = &samples;
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(request, std::move(columns), out, std::move(observers)));
  samples.Finish();
  findings.AddTo(source, out);
  const std::vector<correlate::Dimension> by = out.by;
  XENOSCOPE_RETURN_IF_ERROR(report::ApplyRowFilters(filters, by, out));
  if (!filters.empty()) {
    out.cautions.emplace_back(
        "VM exits and the timeline show all samples, not only the selected rows.");
  }
  const correlate::ProfileResult& flame = out.further.front();
  nlohmann::ordered_json page = report::ProfilePage(out, out, flame, options);
  const Tsc zero = out.traced ? timeline.zero() : out.sampled.begin;
  if (out.wall_clock) page["clock"] = report::PageClock(out, zero);
  XENOSCOPE_ASSIGN_OR_RETURN(page["flame"],
                             report::PageFlame(out, flame, &samples.over_time(), zero, {}));
  if (with_code) page["code"] = CodeOf(source, request, out, out.further.back()).ToJson();
  if (out.traced) {
    XENOSCOPE_RETURN_IF_ERROR(timeline.AddTo(samples, page));
    if (findings.document() != nullptr) {
      report::AddExitParts(*findings.document(), out, page["exits"]);
    }
    XENOSCOPE_RETURN_IF_ERROR(AddThreads(source, out, timeline.shown(), page["timeline"]));
    XENOSCOPE_RETURN_IF_ERROR(
        timeline.AddIntervals(report::BytesLeft(page, timeline.pcpus()), page["timeline"]));
  }
  return report::ToPage(page);
}

absl::Status WriteTimeline(const ProfileSource& source, const ProfileOptions& request,
                           const report::ProfileFormat& format, profile::ProfileColumns columns,
                           const std::string& path, const std::string& title,
                           report::ProfileReport& out) {
  std::ofstream file;
  if (!path.empty()) {
    file.open(path, std::ios::binary);
    if (!file.good()) return ErrnoError(errno, "cannot write {}", path);
  }
  const bool perfetto = format.name == report::kPerfetto;
  correlate::StackOptions stacks{.by_address = perfetto, .fold_recursion = columns.fold_recursion};
  if (columns.with_inlined) {
    stacks.inlined_at = [&source](const correlate::CodeLocation& at) {
      return profile::InlinedFunctions(
          source.LinesOf(at.domain, at.mode, at.space, at.address).inlined);
    };
  }
  const auto sink = [&](std::string_view bytes) -> absl::Status {
    if (path.empty()) {
      XENOSCOPE_ASSIGN_OR_RETURN(const bool wanted, WriteStdoutBlock(bytes));
      return wanted ? absl::OkStatus() : absl::CancelledError("its reader has closed it");
    }
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return file.good() ? absl::OkStatus() : ErrnoError(errno, "cannot write {}", path);
  };
  absl::Status written;
  if (perfetto) {
    report::PerfettoWriter writer(out, source.symbols(), std::move(stacks), sink);
    writer.packets().Begin(source.Origin());  // samples may be placed without the trace
    written = source.Profile(request, std::move(columns), out, {.pipeline = &writer});
    writer.EndTrace();
    WarnOfCpus(writer.left_out());
    if (written.ok()) written = PutThreads(source, out, writer);
    if (written.ok()) written = writer.Finish();
  } else {
    report::FirefoxWriter writer(out, source.symbols(), std::move(stacks));
    written = source.Profile(request, std::move(columns), out, {.pipeline = &writer});
    if (written.ok()) written = writer.Write(title, sink);
  }
  if (absl::IsCancelled(written)) return absl::OkStatus();
  if (!written.ok() || path.empty()) return written;
  file.close();
  return file.good() ? absl::OkStatus() : ErrnoError(errno, "cannot write {}", path);
}

}  // namespace xenoscope::cli
