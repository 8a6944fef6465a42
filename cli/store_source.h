// Opens a store as options say, and makes profiles of its slices: for the commands that otherwise
// take a recording.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/options.h"
#include "correlate/row_key.h"
#include "report/profile/profile_view.h"
#include "report/profile/row_filter.h"
#include "store/store.h"
#include "store/trace_totals.h"

namespace xenoscope::cli {

// The options that choose slices of a store.
struct StoreOptions {
  std::string url;      // empty: a recording instead
  bool shared = false;  // whether it is the store of what dom0 shares with this guest
  store::Selection selection;
};

// Adds them to a command, in a group of their own. `options` must outlive it. No option of the
// group but --from-store and --shared goes without one: CheckStoreOptions.
void AddStoreOptions(Command command, StoreOptions& options);
// Adds the options --host, --since and --until alone, for commands whose store is an argument.
void AddSliceOptions(Command command, StoreOptions& options);
// Adds the options --WHICH-host, --WHICH-since and --WHICH-until, for slices that are compared with
// the others.
void AddOtherSliceOptions(Command command, const std::string& which, StoreOptions& options);
// Selects of `others` what was not said of them as in `options`: the store, hosts, and times.
void SelectAlike(const StoreOptions& options, StoreOptions& others);
// Throws a usage error if slices are chosen without a store.
void CheckStoreOptions(const StoreOptions& options);

// Returns what is selected, for people: "web1,web2 from 2026-03-01T14:30:00Z".
std::string Describe(const StoreOptions& options);

// Opens the store for reading. Errors: those of store::OpenStore; NotFound where nothing was shared
// yet.
absl::StatusOr<std::unique_ptr<store::Store>> OpenForReading(const StoreOptions& options);

// The intervals in which selected slices begin.
struct StoredTimes {
  std::string event;  // that of most slices
  // In nanoseconds of UTC since 1970: multiples of the interval's length.
  std::vector<int64_t> begins{};
  int64_t longest_ns = 0;  // the time of the longest slice
};
// Returns them in ascending order. Errors: those of store::OpenStore; NotFound without a slice.
absl::StatusOr<StoredTimes> FindStoredTimes(const StoreOptions& options, int64_t interval_ns);

// The slices that a profile is of.
struct StoredSlices {
  uint64_t slices = 0;
  std::vector<std::string> hosts;
  int64_t newest_end_ns = 0;  // the end of the newest one, in nanoseconds of UTC since 1970
};

// The columns of a store's profile: any of host, domain, vcpu, mode, exit, image and function.
struct StoredColumns {
  std::vector<correlate::Dimension> by;
  bool with_subtotals = false;  // the first column is the domain then, or there are filters
  std::vector<report::RowFilter> filters{};  // of subtotals; `by` has their columns
};

// Writes the profile of the selected slices to `out`. Without an event in the selection it is of
// the one that has most slices. Errors: those of store::OpenStore, Store::Read and Merger.
absl::Status ProfileOfStore(const StoreOptions& options, const StoredColumns& columns,
                            report::ProfileReport& out, StoredSlices* slices = nullptr);
// The same for one domain, by its name: rows of others are left out, and shares are parts of its
// own time. `domain` is empty for all.
absl::Status ProfileOfStore(const StoreOptions& options, const std::string& domain,
                            std::vector<correlate::Dimension> by, report::ProfileReport& out,
                            StoredSlices* slices = nullptr);

// Returns what the traces of the selected slices show, in cycles of `clock`, and a note that says
// which slices these are. Errors: those of store::OpenStore and Store::Read; NotFound without a
// slice.
absl::StatusOr<store::TraceTotals> TraceTotalsOfStore(const StoreOptions& options, Clock& clock,
                                                      std::string& note);

// Leaves only rows of the domain, with shares of its time.
void Narrow(DomainId domain, report::ProfileReport& profile);

// Returns the domains of such a profile that have these names. Errors (NotFound): a domain that is
// not there.
absl::StatusOr<std::vector<DomainId>> ChooseStoredDomains(const report::ProfileReport& profile,
                                                          const std::vector<std::string>& names);

}  // namespace xenoscope::cli
