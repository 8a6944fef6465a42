// The output of `xenoscope top`: domains and hottest functions in the last seconds of a recording.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "base/ids.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// The sums over the vCPUs of a domain.
struct TopDomain {
  std::string title;
  uint64_t vcpus = 0;
  double seconds = 0;  // the time that the sums are of
  // Parts of that time, of all vCPUs together: running, and of the known states.
  double running = 0;
  double runnable = 0;
  double all = 0;
  std::optional<uint64_t> hypercalls;  // nothing: not known
  uint64_t exits = 0;
  std::vector<std::pair<std::string, uint64_t>> reasons;  // of exits, the most frequent first
};
// Returns the domains of a trace, without the idle one. O(rows).
std::vector<TopDomain> TopDomains(const analysis::AnalysisResult& trace,
                                  const std::function<std::string(DomainId)>& domain_name);

// A window of time of a recording.
struct TopFrame {
  std::string recording;
  double seconds = 0;   // length of the window
  bool over = false;    // whether the recording is complete
  bool has_xen = true;  // whether the host runs Xen; else the only domain is its Linux
  std::string note;     // what the window is of, where that is not one recording
  // The analysis of the window's trace; null if there is no trace.
  const analysis::AnalysisResult* trace = nullptr;
  std::vector<TopDomain> domains;  // what the trace shows
  std::optional<Table> threads;    // TopThreadsTable, if threads are to be shown
  // The profile; null if the recording has no samples.
  const ProfileReport* profile = nullptr;
  uint64_t lost_samples = 0;  // number since the recording began
};

// The size of the output, and the rows to show.
struct TopLayout {
  TextStyle style;
  size_t rows = 0;             // maximum of lines; 0: all
  ProfileSelection selection;  // functions to show
};

// The texts of a frame. Returns at most `rows` lines, each with '\n' at its end.
std::string TopText(const TopFrame& frame, const TopLayout& layout);

}  // namespace xenoscope::report
