// What `xenoscope top` shows of the last seconds of a recording: the domains, and the hottest
// functions.
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
  double seconds = 0;  // of the window
  bool over = false;   // nothing more is being recorded
  // What the trace tells of the window; null: there is no trace.
  const analysis::AnalysisResult* trace = nullptr;
  // Null: no samples are taken.
  const ProfileReport* profile = nullptr;
  uint64_t lost_samples = 0;  // since recording began
  std::function<std::string(DomainId)> domain_name;
};

// How much room there is, and which rows are wanted.
struct TopLayout {
  TextStyle style;
  size_t rows = 0;             // 0: without end
  ProfileSelection selection;  // of the functions
};

// Each line ends with '\n'; at most `rows` lines.
std::string TopText(const TopFrame& frame, const TopLayout& layout);

}  // namespace xenoscope::report
