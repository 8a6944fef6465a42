#include "cli/top_of_store.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "analysis/document.h"
#include "analysis/find_figure.h"
#include "base/error.h"
#include "profile/pipeline_options.h"
#include "store/store.h"
#include "store/trace_totals.h"

namespace xenoscope::cli {
namespace {

using analysis::Figure;

constexpr std::array<std::string_view, 4> kStoreGroupings = {
    "domain,mode,function", "domain,exit,function", "host,domain,function", "domain,exit"};

// Returns the rows of a group of the traces.
const std::vector<analysis::MetricRow>& RowsOf(const analysis::Section& traces,
                                               std::string_view key) {
  static const std::vector<analysis::MetricRow> none;
  const analysis::MetricGroup* const found = analysis::FindGroup(traces, key);
  return found == nullptr ? none : found->rows;
}

// Domains of one name on several hosts are one: their figures are means over these.
std::vector<report::TopDomain> DomainsOf(const store::TraceTotals& totals, const Clock& clock) {
  const analysis::Section traces = totals.Describe({});
  const analysis::Section by_vcpu = totals.Describe({.by_vcpu = true});
  absl::flat_hash_map<std::string_view, uint64_t> vcpus;  // of each domain
  for (const analysis::MetricRow& vcpu : RowsOf(by_vcpu, "runstates")) {
    ++vcpus[std::string_view(vcpu.name).substr(0, vcpu.name.rfind(" v"))];  // "web v0"
  }
  std::vector<report::TopDomain> out;
  for (const analysis::MetricRow& row : RowsOf(traces, "runstates")) {
    report::TopDomain domain;
    domain.title = row.name;
    domain.running = clock.Seconds(Figure(row, "running"));
    domain.runnable = clock.Seconds(Figure(row, "runnable"));
    domain.all = domain.running + domain.runnable + clock.Seconds(Figure(row, "blocked")) +
                 clock.Seconds(Figure(row, "offline"));
    domain.vcpus = vcpus[row.name];
    if (domain.all <= 0 || domain.vcpus == 0) continue;
    domain.seconds = domain.all / static_cast<double>(domain.vcpus);
    out.push_back(std::move(domain));
  }
  for (const analysis::MetricRow& row : RowsOf(traces, "exits")) {
    const auto domain = std::ranges::find(out, row.name, &report::TopDomain::title);
    if (domain == out.end()) continue;
    domain->exits = Figure(row, "count");
    for (const analysis::MetricRow& reason : row.parts) {
      domain->reasons.emplace_back(reason.name, Figure(reason, "count"));
    }
    std::ranges::stable_sort(domain->reasons, std::ranges::greater(),
                             &std::pair<std::string, uint64_t>::second);
  }
  if (totals.hypercall_slices() < totals.traced_slices()) return out;
  for (report::TopDomain& domain : out) domain.hypercalls = 0;
  for (const analysis::MetricRow& row : RowsOf(traces, "hypercalls")) {
    const auto domain = std::ranges::find(out, row.name, &report::TopDomain::title);
    if (domain != out.end()) domain->hypercalls = Figure(row, "count");
  }
  return out;
}

// Returns the length of the time that the slices are of, of one host, in seconds.
double SecondsOf(const store::TraceTotals& totals, const Clock& clock,
                 const store::Selection& selection, int64_t newest_end_ns) {
  if (totals.traced_slices() > 0) {
    return clock.Seconds(totals.traced()) / static_cast<double>(totals.hosts().size());
  }
  return static_cast<double>(newest_end_ns - std::max<int64_t>(selection.since_ns, 0)) / 1e9;
}

}  // namespace

TopOfStore::TopOfStore(TopOfStoreOptions options)
    : TopSource(options.by, kStoreGroupings),
      options_(std::move(options)),
      has_begin_(options_.store.selection.since_ns != store::Selection().since_ns),
      has_end_(options_.store.selection.until_ns != store::Selection().until_ns) {}

absl::Status TopOfStore::Update() {
  if (!is_read_) {
    XENOSCOPE_RETURN_IF_ERROR(OpenForReading(options_.store).status());
  }
  if (!has_begin_ && !has_end_) {
    options_.store.selection.since_ns = absl::GetCurrentTimeNanos() - options_.window_ns;
  }
  is_read_ = true;
  const absl::Status status = Read();
  nothing_ = absl::IsNotFound(status) ? std::string(Message(status)) : std::string();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status TopOfStore::Read() {
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<correlate::Dimension> by,
                             report::ParseDimensions(this->by()));
  if (!options_.domain.empty() && !profile::HasDimension(by, correlate::Dimension::kDomain)) {
    by.insert(by.begin(), correlate::Dimension::kDomain);
  }
  profile_ = {};
  StoredSlices slices;
  XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(options_.store, {std::move(by)}, profile_, &slices));
  Clock clock;
  std::string note;
  XENOSCOPE_ASSIGN_OR_RETURN(const store::TraceTotals totals,
                             TraceTotalsOfStore(options_.store, clock, note));
  frame_ = {.recording = options_.store.url,
            .seconds = SecondsOf(totals, clock, options_.store.selection, slices.newest_end_ns),
            .over = over(),
            .note = std::move(note),
            .domains = DomainsOf(totals, clock),
            .threads = {},
            .lost_samples = profile_.lost_in_buffers};
  known_domains_.clear();
  for (const correlate::ProfileRow& row : profile_.result.domains) {
    known_domains_.push_back(profile_.domain_name(row.domain));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TopOfStore::Text(const report::TextStyle& style, size_t rows) {
  if (!nothing_.empty()) return nothing_ + '\n';
  report::TopLayout layout{.style = style, .rows = rows, .selection = {}};
  layout.selection.limit = rows > 0 ? rows : kBatchFunctions;
  if (!options_.domain.empty()) {
    absl::StatusOr<std::vector<DomainId>> chosen = ChooseStoredDomains(profile_, {options_.domain});
    if (absl::IsNotFound(chosen.status())) return std::string(Message(chosen.status())) + '\n';
    XENOSCOPE_RETURN_IF_ERROR(chosen.status());
    layout.selection.domains = *std::move(chosen);
  }
  frame_.profile = &profile_;
  return report::TopText(frame_, layout);
}

void TopOfStore::NextDomain() {
  auto next = known_domains_.begin();
  if (!options_.domain.empty()) {
    next = std::ranges::find(known_domains_, options_.domain);
    if (next != known_domains_.end()) ++next;
  }
  options_.domain = next == known_domains_.end() ? std::string() : *next;
}

}  // namespace xenoscope::cli
