#include "profile/recorded_samples.h"

#include <utility>

#include "base/error.h"
#include "base/xen_address.h"

namespace xenoscope::profile {

using recording::Sample;

absl::StatusOr<recording::SampleStream> OpenSelected(const recording::Recording& recording,
                                                     const SampleSelection& selection,
                                                     size_t source) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream, recording.OpenSamples(source));
  if (source < selection.skipped_bytes.size()) {
    stream.reader.SkipTo(selection.skipped_bytes[source]);
  }
  return stream;
}

RecordedSamples::RecordedSamples(const SampleSelection& selection,
                                 const RecordedProcesses* processes)
    : processes_(processes) {
  const auto add = [this](std::span<const uint16_t> events) {
    for (const uint16_t event : events) {
      if (event < events_.size()) events_.set(event);  // no sample has a higher number
    }
  };
  add(selection.events);
  for (const std::vector<uint16_t>& events : selection.beside) add(events);
}

void BracketSummary::Add(TscRange when) {
  all.begin = std::min(all.begin, when.begin);
  all.end = std::max(all.end, when.end);
  longest = std::max(longest, when.Length());
}

absl::StatusOr<BracketSummary> SummariseBrackets(const recording::Recording& recording,
                                                 const SampleSelection& selection) {
  BracketSummary brackets;
  for (size_t i = 0; i < recording.info().sources.size(); ++i) {
    XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream,
                               OpenSelected(recording, selection, i));
    while (const auto when = stream.reader.NextBracket()) brackets.Add(*when);
  }
  return brackets;
}

absl::StatusOr<RecordedSamples> RecordedSamples::Open(const recording::Recording& recording,
                                                      const SampleSelection& selection,
                                                      const RecordedProcesses* processes) {
  RecordedSamples samples(selection, processes);
  for (size_t i = 0; i < recording.info().sources.size(); ++i) {
    const std::string& pmu = recording.info().sources[i].cpu_type;
    std::vector<Part> parts = {Part::kAll};
    if (pmu == recording::kVpmuAll) parts = {Part::kKnownDomain, Part::kUnknownDomain};
    for (const Part part : parts) {
      XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream,
                                 OpenSelected(recording, selection, i));
      samples.streams_.push_back({std::move(stream), part, pmu.starts_with(recording::kVpmu)});
    }
  }
  for (Stream& stream : samples.streams_) samples.Advance(stream);
  return samples;
}

const Sample* RecordedSamples::Next() {
  if (given_ != nullptr) Advance(*given_);
  Stream* first = nullptr;
  for (Stream& stream : streams_) {
    if (!stream.next) continue;
    if (first == nullptr || stream.next->when.end < first->next->when.end) first = &stream;
  }
  given_ = first;
  return first == nullptr ? nullptr : &*first->next;
}

uint64_t RecordedSamples::Damaged() const {
  uint64_t damaged = 0;
  for (const Stream& stream : streams_) {
    if (stream.part == Part::kUnknownDomain) continue;  // the file's other part has counted it
    const recording::SampleDamage& damage = stream.samples.reader.damage();
    damaged += damage.skipped_samples + damage.invalid_samples;
  }
  return damaged;
}

std::vector<uint64_t> RecordedSamples::Offsets() const {
  std::vector<uint64_t> offsets;
  for (const Stream& stream : streams_) {
    if (stream.part == Part::kUnknownDomain) continue;  // the file is that of the other part
    offsets.push_back(stream.samples.reader.offset());
  }
  return offsets;
}

const Sample* RecordedSamples::NextWanted(Stream& stream) const {
  const Sample* next = stream.samples.reader.Next();
  while (next != nullptr) {
    const bool known = next->vcpu.domain < kFirstReservedDomain;
    const bool in_part = stream.part == Part::kAll || known == (stream.part == Part::kKnownDomain);
    if (events_[next->event] && in_part) return next;
    next = stream.samples.reader.Next();
  }
  return nullptr;
}

void RecordedSamples::Advance(Stream& stream) const {
  const Sample* next = NextWanted(stream);
  if (next == nullptr) {
    stream.next.reset();
    return;
  }
  Sample& sample = stream.next.emplace(*next);
  if (stream.by_vpmu && sample.timed && IsXenAddress(sample.address) && sample.mode != Mode::kXen &&
      sample.vcpu.domain < kFirstReservedDomain) {
    // Before format 1.8: Linux took Xen's code for its own.
    sample.mode = Mode::kXen;
    if (stream.part != Part::kAll) {
      sample.pcpu = PcpuId{sample.vcpu.vcpu.value};
      sample.vcpu.domain = kDomXen;
      sample.thread.reset();
    }
  }
  if (sample.stopped) {
    sample.space = processes_ == nullptr ? AddressSpaceId{}
                                         : processes_->SpaceOf(sample.vcpu.domain, sample.space);
    return;
  }
  if (!sample.thread || processes_ == nullptr) return;
  sample.space =
      processes_->SpaceOf(sample.vcpu.domain, sample.thread->pid, Tsc{sample.when.end.value - 1});
}

}  // namespace xenoscope::profile
