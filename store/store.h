// A store of slices: SQLite in a file, or ClickHouse in servers.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/late_names.h"
#include "store/read_ahead.h"
#include "store/slice.h"

namespace xenoscope::store {

// Which of a slice's sums are wanted. A store may leave out others.
struct WantedSums {
  bool profile = true;  // what profiles are made of
  bool unions = true;   // of profile: sums of all contexts together, and pairs
  bool trace = true;    // TraceSums
};

// Which slices are meant.
struct Selection {
  std::vector<std::string> hosts{};  // empty: all
  // Those that begin in [since_ns, until_ns), in nanoseconds of UTC since 1970.
  int64_t since_ns = std::numeric_limits<int64_t>::min();
  int64_t until_ns = std::numeric_limits<int64_t>::max();
  std::string event{};  // empty: all
  WantedSums wanted{};
};

// The longest time of a slice: a day.
inline constexpr int64_t kMaxSliceNs = int64_t{86'400} * 1'000'000'000;

// What may be done with a store: kWrite changes one that is there, kCreate also makes one that is
// not.
enum class Access : uint8_t { kRead, kWrite, kCreate };

class Store {
 public:
  using SliceVisitor = std::function<absl::Status(const Slice&, const Dictionary&)>;

  virtual ~Store() = default;
  // Adds the slice, whose keys are in the dictionary: all of it or nothing. Returns whether it was
  // new: one of the same host, time and event that is there already stays as it is. Errors:
  // InvalidArgument as CheckSlice; FailedPrecondition if the host has another slice of the event
  // that overlaps this one in time: two hosts have one name. O(sums).
  absl::StatusOr<bool> Push(const Slice& slice, const Dictionary& dictionary);
  // Returns the heads of the selected slices, in the order of time.
  virtual absl::StatusOr<std::vector<SliceHead>> Heads(const Selection& selection) = 0;
  // Calls visit(slice, dictionary) for each selected slice, host by host and each host's in the
  // order of time, with one dictionary that grows. A store may add slices of one host and clock up,
  // and give their sum (Slice::count). Ends at the first error of `visit`, and returns
  // it. Errors: InvalidArgument as CheckSlice: the store is damaged. O(the slices' sums).
  absl::Status Read(const Selection& selection, const SliceVisitor& visit);
  // Removes the selected slices, and gives their space back. Returns their number. O(store).
  virtual absl::StatusOr<uint64_t> Remove(const Selection& selection) = 0;
  // Joins selected slices of a host and an event that begin in the same interval of `interval_ns`
  // (at most kMaxSliceNs; intervals begin at multiples of it since 1970) to one slice, where their
  // sums add up to those of one: they have one clock and one period. Shares and intervals of the
  // joined time stay as they were. Slices that are pushed again count once, as before. A question
  // of a time that begins within a joined slice does not have it. Returns the number of slices that
  // were joined, and of those that became of them. Errors: FailedPrecondition where the slices are
  // kept by other stores. O(store).
  struct Joined {
    uint64_t from = 0;
    uint64_t to = 0;
  };
  virtual absl::StatusOr<Joined> Join(const Selection& selection, int64_t interval_ns) = 0;
  // Replaces the domain's name in the selected slices by "(removed 17)", and the names of its
  // images and functions, one for one. The sums stay, so that those of hosts and of other domains
  // stay as they were. Xen's functions keep their names. Returns the number of slices that had the
  // domain. Errors: NotFound if none had. O(store).
  virtual absl::StatusOr<uint64_t> EraseDomain(const Selection& selection,
                                               const std::string& domain) = 0;
  // Keeps the functions of the file with this build-id or content id (hexadecimal), in place of
  // those that it has of that file: all of them or nothing. Errors: as CheckFunctions.
  // O(functions).
  absl::Status PutFunctions(const std::string& build_id,
                            const std::vector<ImageFunction>& functions);
  // Returns the functions of the file, in ascending order; none if it has none. They may be
  // anyone's: LateNames checks them. O(functions).
  virtual absl::StatusOr<std::vector<ImageFunction>> Functions(const std::string& build_id) = 0;

 private:
  // As above, of what is checked by this class.
  virtual absl::StatusOr<bool> PushChecked(const Slice& slice, const Dictionary& dictionary) = 0;
  // Runs on a thread of its own, while slices before are visited and Functions is called.
  virtual absl::Status ReadUnchecked(const Selection& selection, const ReadAhead::Sink& sink) = 0;
  virtual absl::Status PutChecked(const std::string& build_id,
                                  const std::vector<ImageFunction>& functions) = 0;
};

// Checks that a slice is as its sums must be: numbers are finite and keys are there. `dictionary`
// is the slice's. O(sums).
[[nodiscard]] absl::Status CheckSlice(const Slice& slice, const Dictionary& dictionary);

// Checks that a URL is one of a store, which need not be there. Errors: InvalidArgument, with what
// to write.
[[nodiscard]] absl::Status CheckStoreUrl(std::string_view url);

// Whether a URL that CheckStoreUrl takes is of a server, which hosts share.
[[nodiscard]] bool IsServerUrl(std::string_view url);

// Opens the store of a URL: "sqlite:FILE" or "clickhouse://HOST:PORT/DATABASE". With
// Access::kCreate a file that is not there, or the table in the database, is made. Errors:
// InvalidArgument for another URL, and for a file that is no store; NotFound; FailedPrecondition
// for a store of another version; those of a server.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& url,
                                                               Access access);

}  // namespace xenoscope::store
