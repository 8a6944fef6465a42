// The output of `xenoscope top`: domains and hottest functions in the last seconds of a recording.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "analysis/analyse_trace.h"
#include "base/ids.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

// A window of time of a recording.
struct TopFrame {
  std::string recording;
  double seconds = 0;   // length of the window
  bool over = false;    // whether the recording is complete
  bool has_xen = true;  // whether the host runs Xen; else the only domain is its Linux
  // The analysis of the window's trace; null if there is no trace.
  const analysis::AnalysisResult* trace = nullptr;
  // The profile; null if the recording has no samples.
  const ProfileReport* profile = nullptr;
  uint64_t lost_samples = 0;  // number since the recording began
  std::function<std::string(DomainId)> domain_name;
};

// The size of the output, and the rows to show.
struct TopLayout {
  TextStyle style;
  size_t rows = 0;             // maximum of lines; 0: all
  ProfileSelection selection;  // functions to show
};

// Returns at most `rows` lines, each with '\n' at its end.
std::string TopText(const TopFrame& frame, const TopLayout& layout);

}  // namespace xenoscope::report
