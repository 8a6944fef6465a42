#include "cli/recorded_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "correlate/em_refinement.h"
#include "correlate/exit_samples.h"
#include "correlate/pipeline_observer.h"
#include "correlate/placing/placer.h"
#include "correlate/placing_thread.h"
#include "correlate/profile.h"
#include "report/profile/chain_notes.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using recording::Recording;
using recording::RecordingInfo;
using recording::Sample;

// From this version on, until xenoprof's end, Xen on AMD logs stale addresses (method.md §2.2).
constexpr trace::XenVersion kFirstStale = trace::MakeVersion(4, 11);

// The samples of another source that lie in a range.
class SamplesWithin final : public correlate::SampleSource {
 public:
  SamplesWithin(correlate::SampleSource& source, TscRange range) : source_(source), range_(range) {}

  const Sample* Next() override {
    const Sample* sample = source_.Next();
    while (sample != nullptr &&
           (sample->when.begin < range_.begin || range_.end < sample->when.end)) {
      ++outside_;
      sample = source_.Next();
    }
    return sample;
  }
  uint64_t outside() const { return outside_; }

 private:
  correlate::SampleSource& source_;
  TscRange range_;
  uint64_t outside_ = 0;
};

// When samples were taken.
struct BracketSummary {
  TscRange all{Tsc{std::numeric_limits<uint64_t>::max()}, Tsc{0}};
  Cycles longest = 0;

  void Add(TscRange when) {
    all.begin = std::min(all.begin, when.begin);
    all.end = std::max(all.end, when.end);
    longest = std::max(longest, when.Length());
  }
};

absl::StatusOr<BracketSummary> SummariseBrackets(const Recording& recording,
                                                 const SampleSelection& selection) {
  BracketSummary brackets;
  for (size_t i = 0; i < recording.info().sources.size(); ++i) {
    XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream,
                               OpenSelected(recording, selection, i));
    while (const auto when = stream.reader.NextBracket()) brackets.Add(*when);
  }
  return brackets;
}

// The first event of which there is a sample; the first when there is none.
absl::StatusOr<uint16_t> FirstSampled(const Recording& recording,
                                      const std::vector<uint64_t>& skipped_bytes) {
  for (size_t i = 0; i < recording.info().events.size(); ++i) {
    SampleSelection selection;
    selection.event = static_cast<uint16_t>(i);
    selection.skipped_bytes = skipped_bytes;
    XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                               RecordedSamples::Open(recording, selection, nullptr));
    if (samples.Next() != nullptr) return selection.event;
  }
  return 0;
}

// Whether a sample stands for time: the processor's cycles, or the timer that stood in for them.
bool CountsTime(const recording::EventInfo& event) {
  if (event.clocked_by == "linux") return false;  // its faults and switches
  if (!event.clocked_by.empty() && event.clocked_by != "pmu") return true;
  return event.name.find("cycle") != std::string::npos ||
         event.name.find("cpu_clk") != std::string::npos;
}

std::string EventText(const recording::EventInfo& event) {
  const bool counted =
      event.clocked_by.empty() || event.clocked_by == "pmu" || event.clocked_by == "linux";
  if (counted) return event.name;
  return fmt::format("{} (clocked by {})", event.name, event.clocked_by);
}

// "hash.c:12", of the innermost inlined function, as perf's srcline has it.
std::string LineText(const report::CodeLines& lines) {
  if (lines.inlined.empty() || lines.inlined.front().call_site_or_line.line == 0) {
    return "[no line]";
  }
  const SourceLine& line = lines.inlined.front().call_site_or_line;
  return fmt::format("{}:{}", line.file, line.line);
}

std::vector<std::string> InlinedAt(const report::ProfileReport& report,
                                   const correlate::CodeLocation& place) {
  if (!report.lines_of) return {};
  std::vector<std::string> names;
  for (const Frame& frame :
       report.lines_of(place.domain, place.mode, place.space, place.address).inlined) {
    names.emplace_back(frame.function);
  }
  if (!names.empty()) names.pop_back();  // the function itself
  return names;
}

bool Has(const std::vector<Dimension>& by, Dimension dimension) {
  return std::ranges::find(by, dimension) != by.end();
}

correlate::EmRefinementOptions RefinementFor(const std::vector<Dimension>& by) {
  correlate::EmRefinementOptions refinement;
  refinement.by_address = Has(by, Dimension::kAddress) || Has(by, Dimension::kLine);
  refinement.by_process = Has(by, Dimension::kProcess);
  refinement.by_pcpu = Has(by, Dimension::kPcpu);
  refinement.by_placing = Has(by, Dimension::kPlacing) && Has(by, Dimension::kExit);
  refinement.each_sample = Has(by, Dimension::kStack);
  return refinement;
}

// Places the samples by the trace, or without one: for `observer` by the columns of `out`, for
// `also` by those beside them, so that none of the two changes what the other one sees. Fills what
// the report says of it.
absl::Status PlaceAll(const ProfileInput& input, Cycles longest_bracket,
                      correlate::SampleSource& all, correlate::PlacingObserver& observer,
                      correlate::PlacingObserver& secondary, report::ProfileReport& out) {
  SamplesWithin samples(all, input.within);
  const bool both = !out.secondary_by.empty();
  if (input.trace == nullptr) {
    correlate::FanOutObserver fan_out({&observer});
    if (both) fan_out.Add(&secondary);
    out.counts = correlate::PlaceWithoutTrace(samples, fan_out);
    out.outside = samples.outside();
    return absl::OkStatus();
  }
  const trace::Dialect& dialect = input.dialect;
  out.vendor = dialect.vendor;
  const auto by = [&out](Dimension dimension) {
    return Has(out.by, dimension) || Has(out.secondary_by, dimension);
  };
  correlate::PlacingOptions placing;
  placing.sampled = out.sampled;
  placing.longest_bracket = longest_bracket;
  placing.vendor = dialect.vendor;
  placing.by_subreason = by(Dimension::kSubreason);
  placing.by_waiting = by(Dimension::kWaiting);
  placing.by_wakeup = by(Dimension::kWakeup);
  if (dialect.vendor == trace::Vendor::kSvm && dialect.before_version > kFirstStale) {
    placing.logged_rip = correlate::LoggedRip::kOfLastEntry;
  }
  correlate::EmRefinementOptions refinement = RefinementFor(out.by);
  if (input.pipeline_observer != nullptr) refinement.each_sample = true;
  correlate::EmRefiner refiner(refinement, *input.resolver, observer);
  correlate::EmRefiner secondary_refiner(RefinementFor(out.secondary_by), *input.resolver,
                                         secondary);
  correlate::FanOutObserver fan_out({&refiner});
  if (both) fan_out.Add(&secondary_refiner);
  // Who sees the trace, too, does so on this thread.
  std::optional<correlate::PlacingThread> thread;
  if (input.pipeline_observer == nullptr) thread.emplace(fan_out);
  correlate::PlacingObserver& next =
      thread ? static_cast<correlate::PlacingObserver&>(*thread) : fan_out;
  correlate::Placer placer(placing, samples, next, input.pipeline_observer);
  trace::OrderedStream stream = input.trace->Stream();
  while (const trace::Item* item = stream.Next()) {
    if (input.pipeline_observer != nullptr) {
      input.pipeline_observer->OnItem(*item);
      XENOSCOPE_RETURN_IF_ERROR(input.pipeline_observer->status());
    }
    placer.Take(*item);
  }
  XENOSCOPE_RETURN_IF_ERROR(placer.Finish());
  if (thread) thread->Finish();
  refiner.Finish();
  secondary_refiner.Finish();
  out.counts = placer.counts();
  out.placing_checks = placer.Checks();
  out.waiting_sets = placer.waiting_sets();
  out.outside = samples.outside();
  return absl::OkStatus();
}

// Places the samples for the profile or the two that are asked for, and for who looks on.
absl::Status ProfileAll(const ProfileInput& input, Cycles longest_bracket, double period,
                        correlate::SampleSource& samples, report::ProfileReport& out) {
  const auto line_of = [&out](const correlate::PlacedSample& placed) -> std::string {
    if (!out.lines_of) return "[no line]";
    return LineText(out.lines_of(placed.vcpu.domain, placed.sample->mode, placed.sample->space,
                                 placed.address));
  };
  const correlate::InlinedAt inlined_at =
      out.with_inlined
          ? [&out](const correlate::CodeLocation& place) { return InlinedAt(out, place); }
          : correlate::InlinedAt();
  correlate::Profile profile({out.by, out.is_time, period, out.with_parts, line_of, inlined_at},
                             *input.resolver);
  correlate::Profile secondary({out.secondary_by, out.is_time, period, false, line_of, {}},
                               *input.resolver);
  correlate::FanOutObserver observers({&profile});
  if (input.pipeline_observer != nullptr) observers.Add(input.pipeline_observer);
  XENOSCOPE_RETURN_IF_ERROR(PlaceAll(input, longest_bracket, samples, observers, secondary, out));
  XENOSCOPE_ASSIGN_OR_RETURN(out.result, profile.Finish());
  if (!out.secondary_by.empty()) {
    XENOSCOPE_ASSIGN_OR_RETURN(out.secondary, secondary.Finish());
  }
  return absl::OkStatus();
}

}  // namespace

trace::Dialect CompleteDialect(trace::Dialect known, const trace::TraceFile& trace) {
  if (known.vendor != trace::Vendor::kUnknown) return known;
  trace::DialectEvidence evidence;
  trace::OrderedStream stream = trace.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind == trace::ItemKind::kRecord) evidence.Observe(item->record);
    if (evidence.Enough()) break;
  }
  const trace::Dialect inferred = evidence.Conclude();
  known.vendor = inferred.vendor;
  known.vendor_source = inferred.vendor_source;
  return known;
}

absl::StatusOr<uint16_t> ChooseEvent(const Recording& recording, const std::string& name,
                                     const std::vector<uint64_t>& skipped_bytes) {
  const RecordingInfo& info = recording.info();
  if (info.events.empty()) return NotFoundError("the recording has no samples: no event");
  std::vector<std::string> names;
  for (size_t i = 0; i < info.events.size(); ++i) {
    if (info.events[i].name == name) return static_cast<uint16_t>(i);
    names.push_back(info.events[i].name);
  }
  if (name.empty()) return FirstSampled(recording, skipped_bytes);
  return NotFoundError("no event {} in the recording; it has {}", name, fmt::join(names, ", "));
}

absl::Status ProfileRecorded(const ProfileInput& input, const Recording& recording,
                             const SampleSelection& selection, const RecordedProcesses& processes,
                             report::ProfileReport& out) {
  const RecordingInfo& info = recording.info();
  XENOSCOPE_ASSIGN_OR_RETURN(RecordedSamples samples,
                             RecordedSamples::Open(recording, selection, &processes));
  const recording::EventInfo& event = info.events[selection.event];
  out.event = EventText(event);
  out.is_time = CountsTime(event) && !event.waiting;
  if (event.waiting) {
    out.cautions.emplace_back(
        "samples are of vCPUs that were waiting for a pCPU: where they had been preempted, and how "
        "often, not where their time went");
  }
  if (info.state == recording::State::kEndedEarly) {
    out.cautions.push_back(fmt::format("the recording ended early: {}", info.stopped_because));
  }
  if (Has(out.by, Dimension::kStack)) {
    std::ranges::move(report::ChainNotes(info), std::back_inserter(out.cautions));
  }
  for (const recording::StreamInfo& stream : info.streams) {
    out.lost_in_buffers += stream.logged.lost;
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const BracketSummary brackets,
                             SummariseBrackets(recording, selection));
  out.sampled = info.started < info.stopped ? TscRange{info.started, info.stopped} : brackets.all;
  out.sampled = out.sampled.Intersect(input.within);
  ProfileInput placed = input;
  if (event.waiting) placed.trace = nullptr;  // on no pCPU: the trace has no place for them
  XENOSCOPE_RETURN_IF_ERROR(
      ProfileAll(placed, brackets.longest, static_cast<double>(event.period), samples, out));
  out.damaged = samples.Damaged();
  return absl::OkStatus();
}

absl::Status ProfileTrace(const ProfileInput& input, report::ProfileReport& out) {
  correlate::ExitSamples survey(*input.trace, input.dialect.vendor);
  correlate::ExitSamples samples(*input.trace, input.dialect.vendor);
  out.event = "the trace: VM exits by interrupts of the host";
  BracketSummary brackets;
  while (const Sample* sample = survey.Next()) brackets.Add(sample->when);
  out.sampled = survey.traced().Intersect(input.within);
  out.cautions.emplace_back(
      "samples are the addresses at which an interrupt of the host or an NMI took an HVM guest "
      "from its processor: none is of Xen, of dom0 or of a PV guest");
  out.cautions.emplace_back(
      "they are not random: timers and devices interrupt, so what a guest does in step with those "
      "has too many samples or too few");
  return ProfileAll(input, brackets.longest, /*period=*/0, samples, out);
}

}  // namespace xenoscope::cli
