// Every record of a trace as one line, in the order of time.
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
#include "trace/dialect.h"
#include "trace/events.h"
#include "trace/trace_file.h"

namespace xenoscope::report {

enum class DumpFormat : uint8_t { kText, kJson, kCsv };

// Which events and other items are shown.
class EventFilter {
 public:
  EventFilter() { events_.set(); }

  // Events by name ("vmexit"), glob ("csched2:*"), class ("hvm", "pv"), subclass ("hvm_handler"),
  // or what the trace says of itself: "lost", "damaged", "unknown", "malformed". Errors
  // (InvalidArgument): a word that fits nothing.
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

struct DumpOptions {
  DumpFormat format = DumpFormat::kText;
  bool raw = false;  // the words as they are, instead of fields
  EventFilter events;
  // Empty: all. A record is one of a domain (vCPU) when that ran as it was written, or when one of
  // its fields names it.
  std::vector<DomainId> domains;
  std::vector<VcpuId> vcpus;
  std::vector<PcpuId> pcpus;
  // Only [from, to).
  Tsc from{0};
  Tsc to{~uint64_t{0}};

  trace::Dialect dialect;
  Clock clock;
  Tsc zero;  // what the times of lines count from
  unsigned threads = 1;
};

// Where the lines go, in large pieces and in order. False stops the dump quietly (a closed pipe).
using DumpSink = std::function<absl::StatusOr<bool>(std::string_view chunk)>;

// What was noticed on the way, up to DumpOptions::to.
struct DumpResult {
  uint64_t contradictions = 0;  // changes of runstate from one that the vCPU was not in
  Tsc last;                     // of the last record
};

// Writes the whole dump. Memory is bounded: some pieces of about a MiB a thread.
// Errors: those of the sink.
absl::StatusOr<DumpResult> Dump(const trace::TraceFile& file, const DumpOptions& options,
                                const DumpSink& sink);

}  // namespace xenoscope::report
