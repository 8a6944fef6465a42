// The options that say what is recorded and how; `record` and `top` have them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "recording/info.h"
#include "sampler/recorder.h"

namespace xenoscope::cli {

// The words of the command line, not parsed yet.
struct RecordOptions {
  std::vector<std::string> events;
  std::vector<std::string> agent_events;  // none: those of `events`
  std::vector<std::string> active;
  std::vector<std::string> passive;
  uint32_t agent_mb = 1024;
  std::string agent_source = "perf";
  std::string clock = "pmu";
  std::string source = "auto";
  std::string call_graph;
  bool no_trace = false;
  bool boost = false;
  bool threads = false;
  std::vector<std::string> guest_events;
  std::vector<std::string> guest_functions;
  sampler::TraceRequest trace;
  sampler::SampleRequest samples;
  std::optional<double> drain_ms;
  std::map<recording::SymbolFile::Kind, std::vector<std::string>> guest_files;
};

// Adds them to a command, in a group of their own. `options` must outlive it.
void AddRecordOptions(Command command, RecordOptions& options);

// Parses them into a request; the caller sets the rest of it. Throws a usage error.
sampler::RecordRequest ParseRecordOptions(const RecordOptions& options);

// Returns the options of AddRecordOptions() that were given, as arguments for another command that
// has them.
std::vector<std::string> GivenRecordOptions(Command command);

}  // namespace xenoscope::cli
