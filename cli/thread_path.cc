#include "cli/thread_path.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/error.h"
#include "cli/domain_names.h"
#include "guests/threads/critical_path.h"
#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal.h"
#include "report/threads/path_view.h"

namespace xenoscope::cli {
namespace {

struct NamedThread {
  DomainId domain;
  uint32_t tid = 0;
};

absl::StatusOr<NamedThread> ParseThread(const std::string& text,
                                        const recording::RecordingInfo& info) {
  const size_t slash = text.rfind('/');
  NamedThread thread;
  if (slash == std::string::npos || !absl::SimpleAtoi(text.substr(slash + 1), &thread.tid) ||
      thread.tid == 0) {
    return InvalidError(
        "--path {}: write DOMAIN/TID, such as web1/1234, with the tid that `threads` shows", text);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(thread.domain, ChooseDomain(&info, text.substr(0, slash)));
  return thread;
}

}  // namespace

absl::StatusOr<std::string> ThreadPath(const PathRequest& request, const KernelTraces& kernels,
                                       const trace::TraceFile* xen,
                                       const recording::RecordingInfo& info, Clock clock,
                                       const report::ThreadsOptions& shown) {
  XENOSCOPE_ASSIGN_OR_RETURN(const NamedThread named, ParseThread(request.thread, info));
  std::vector<guests::ThreadStates> domains = ThreadsOf(kernels);
  const auto domain = std::ranges::find(domains, named.domain, &guests::ThreadStates::domain);
  if (domain == domains.end()) {
    return NotFoundError("{} has no kernel's events in the recording",
                         DomainLabel(named.domain, info.NameOf(named.domain)));
  }
  guests::PathFinder finder(request.range);
  for (guests::ThreadStates& each : domains) each.SetObserver(&finder);
  XENOSCOPE_RETURN_IF_ERROR(guests::FollowThreads(domains, xen).status());
  // A number may be used again: the thread with it that ran longest.
  std::optional<size_t> thread;
  for (size_t i = 0; i < domain->threads().size(); ++i) {
    const auto ran = [&domain](size_t each) { return domain->threads()[each].switches; };
    if (domain->threads()[i].tid == named.tid && (!thread || ran(i) > ran(*thread))) thread = i;
  }
  if (!thread) {
    return NotFoundError("{} has no thread {}: `xenoscope threads` lists them",
                         DomainLabel(named.domain, info.NameOf(named.domain)), named.tid);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<guests::PathStep> path,
                             finder.Find({named.domain, *thread}));
  const auto name_of = [&info](DomainId id) { return info.NameOf(id); };
  const report::Table steps = report::PathStepsTable(path, domains, name_of, clock, shown);
  if (request.format == "csv") return report::ToCsv(steps);
  const report::Table sums = report::PathSumsTable(path, domains, name_of, clock, shown);
  if (request.format == "json") {
    return report::Dump({{"begin_tsc", request.range.begin.value},
                         {"end_tsc", request.range.end.value},
                         {"sums", report::ToJson(sums)},
                         {"steps", report::ToJson(steps)}});
  }
  const report::TextStyle style = report::StdoutStyle();
  return report::ToText(sums, style) + "\n" + report::ToText(steps, style);
}

}  // namespace xenoscope::cli
