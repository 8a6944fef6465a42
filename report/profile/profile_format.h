// The formats of a profile.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "report/export/flame_lines.h"
#include "report/profile/profile_view.h"
#include "report/table/table_text.h"

namespace xenoscope::report {

struct ProfileFormatOptions {
  ProfileSelection selection;
  TextStyle style;
  FlameWeight weight = FlameWeight::kSamples;
  std::string title;  // title of pages and pictures
  // Columns of the profile that are frames at the root of pprof's stacks, outermost first.
  std::vector<correlate::Dimension> roots;
};

struct ProfileFormat {
  std::string_view name;
  std::string_view about;
  std::string_view by;  // default columns
  // Whether the profile is by stack, and whether by address too.
  bool stacks = false;
  bool addresses = false;
  bool binary = false;
  bool timeline = false;  // whether it has all samples and the trace
  bool ratios = false;    // whether it shows events side by side, with their ratios
  // The writer; null for formats that need more than the profile (cli/report_with_trace.h).
  absl::StatusOr<std::string> (*write)(const ProfileReport&, const ProfileFormatOptions&) = nullptr;
};

inline constexpr std::string_view kHtml = "html";
inline constexpr std::string_view kPerfetto = "perfetto";
inline constexpr std::string_view kFirefox = "firefox";
inline constexpr std::string_view kPprof = "pprof";

std::span<const ProfileFormat> ProfileFormats();
// Returns null if there is no format of that name.
const ProfileFormat* FindProfileFormat(std::string_view name);

// Returns the columns of a profile in that format: functions become stacks in formats with stacks.
std::vector<correlate::Dimension> ColumnsFor(const ProfileFormat& format,
                                             std::vector<correlate::Dimension> by);

}  // namespace xenoscope::report
