#include "cli/hot_functions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/profile_source.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using report::HotFunction;
using report::HotFunctions;

std::vector<Dimension> ColumnsFor(report::ThreadsBy by) {
  switch (by) {
    case report::ThreadsBy::kThread:
      return {Dimension::kDomain, Dimension::kThread, Dimension::kFunction};
    case report::ThreadsBy::kProcess:
      return {Dimension::kDomain, Dimension::kProcess, Dimension::kFunction};
    case report::ThreadsBy::kContainer:
      return {Dimension::kDomain, Dimension::kContainer, Dimension::kFunction};
    case report::ThreadsBy::kDomain:
      break;
  }
  return {Dimension::kDomain, Dimension::kFunction};
}

// Returns the text of what the row is of; nothing: it is not known.
std::optional<std::string> LabelOf(const ProfileRow& row, report::ThreadsBy by,
                                   const report::ProfileReport& report) {
  std::string label;
  if (by == report::ThreadsBy::kThread) label = row.thread;
  if (by == report::ThreadsBy::kContainer) label = row.container;
  if (by == report::ThreadsBy::kProcess) {
    label =
        row.process_of_thread.empty() ? report.process_name(row.process) : row.process_of_thread;
  }
  return label.empty() ? std::nullopt : std::optional(label);
}

// Adds the function with the largest share of each label that `hot` does not have yet. Shares
// become parts of the label's own, whose size is known where there is a trace.
void AddHottest(const std::vector<ProfileRow>& rows,
                const std::function<std::optional<std::string>(const ProfileRow&)>& label_of,
                HotFunctions& hot) {
  std::map<std::pair<DomainId, std::string>, std::pair<double, const ProfileRow*>> sums;
  for (const ProfileRow& row : rows) {
    std::optional<std::string> label = label_of(row);
    if (!label) continue;
    auto& [sum, largest] = sums[{row.domain, *std::move(label)}];
    sum += row.share;
    if (largest == nullptr || row.share > largest->share) largest = &row;
  }
  for (const auto& [key, found] : sums) {
    const auto& [sum, row] = found;
    if (sum <= 0) continue;
    const auto part = [&sum = sum](double share) { return std::min(share / sum, 1.0); };
    hot.try_emplace(key, HotFunction{row->function, part(row->share), part(row->interval.low),
                                     part(row->interval.high)});
  }
}

}  // namespace

absl::StatusOr<HotFunctions> HotFunctionsOf(const std::string& recording, report::ThreadsBy by) {
  ProfileOptions options;
  options.input = recording;
  auto source = ProfileSource::Open(options);
  if (!source.ok()) return InContext(source.status(), "--functions");
  HotFunctions hot;
  std::set<std::string> rest{""};  // events to look at; "": the first one
  std::set<std::string> done;
  constexpr size_t kMaxEvents = 8;
  while (!rest.empty() && done.size() < kMaxEvents) {
    options.event = rest.extract(rest.begin()).value();
    report::ProfileReport out;
    XENOSCOPE_RETURN_IF_ERROR(source->Profile(
        options, {.by = ColumnsFor(by), .secondary_by = {Dimension::kDomain, Dimension::kFunction}},
        out));
    done.insert(out.event);
    if (options.event.empty()) rest = out.other_events;
    const auto label_of = [&](const ProfileRow& row) { return LabelOf(row, by, out); };
    AddHottest(out.result.rows, label_of, hot);
    const auto all = [](const ProfileRow& /*row*/) { return std::optional<std::string>(""); };
    AddHottest(out.secondary.rows, all, hot);
  }
  return hot;
}

}  // namespace xenoscope::cli
