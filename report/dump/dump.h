// Writes every record of a trace as one line, in the order of time; those of one time in the order
// of pCPUs.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/time_spans.h"
#include "trace/dialect.h"
#include "trace/events.h"
#include "trace/trace_file.h"

namespace xenoscope::report {

enum class DumpFormat : uint8_t { kText, kJson, kCsv };

// A set of events and other items: those that a dump shows.
class EventFilter {
 public:
  EventFilter() { events_.set(); }

  // Makes the set from words. A word is the name of an event ("vmexit"), a glob ("csched2:*"), a
  // class ("hvm", "pv"), a subclass ("hvm_handler"), or another kind of item: "lost", "damaged",
  // "unknown", "malformed". No words give everything. Errors: InvalidArgument when a word fits
  // nothing.
  static absl::StatusOr<EventFilter> Parse(const std::vector<std::string>& words);

  bool Shows(trace::ItemKind kind, trace::Event event) const {
    return kind == trace::ItemKind::kRecord ? events_[static_cast<size_t>(event)]
                                            : (kinds_ >> static_cast<unsigned>(kind) & 1) != 0;
  }
  bool ShowsAllRecords() const { return events_.all(); }

 private:
  std::bitset<trace::kEventCount> events_;
  uint32_t kinds_ = ~uint32_t{0};
};

// What a dump shows, and how.
struct DumpOptions {
  DumpFormat format = DumpFormat::kText;
  bool raw = false;  // the payload's words are shown instead of fields
  EventFilter events;
  // The domains and vCPUs that are shown; empty lists show all. A record belongs to a domain (vCPU)
  // when the domain (vCPU) ran while the record was written, or when a field of the record names
  // it.
  std::vector<DomainId> domains;
  std::vector<VcpuId> vcpus;
  // The pCPUs that are shown; an empty list shows all.
  std::vector<PcpuId> pcpus;
  // The half-open range [from, to) of time that is shown, in cycles.
  Tsc from{0};
  Tsc to{~uint64_t{0}};

  trace::Dialect dialect;
  Clock clock;
  Tsc zero;  // the time that a line shows as 0
  // The number of threads that work.
  unsigned threads = 1;

  // Whether the vCPU, the pCPU, is among those that are shown.
  [[nodiscard]] bool Selects(VcpuRef vcpu) const;
  [[nodiscard]] bool Selects(PcpuId pcpu) const;
};

// Receives the lines, in large pieces and in order. It returns false to stop the dump without an
// error (a closed pipe).
using DumpSink = std::function<absl::StatusOr<bool>(std::string_view chunk)>;

// What the dump found in the trace before DumpOptions::to.
struct DumpResult {
  correlate::TimeSpans
      contradictions;  // the times of changes from a runstate that the vCPU was not in
  Tsc last;            // the time of the last record
};

// Writes the whole dump. Memory is bounded: each thread needs a few pieces of about a MiB. Errors:
// those of the sink.
absl::StatusOr<DumpResult> Dump(const trace::TraceFile& file, const DumpOptions& options,
                                const DumpSink& sink);

}  // namespace xenoscope::report
