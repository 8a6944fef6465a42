// Joins slices in ClickHouse: the server adds their sums up, and they come back as one slice.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "store/clickhouse/http_client.h"
#include "store/clickhouse/sum_columns.h"
#include "store/join.h"
#include "store/store.h"

namespace xenoscope::store {

// Joins the slices of each host, event, clock and period of one selection. The rows of joined
// slices stay where they are, but are replaced: an INSERT adds the joined slice, and a row of the
// kinds 'piece' and 'replaced' for each slice that it stands for. ClickHouse adds these wholly or
// not at all.
class SliceJoin {
 public:
  // Both must outlive it.
  SliceJoin(HttpClient& client, const Selection& selection)
      : client_(client), selection_(selection) {}

  // Adds the numbers of slices to `joined`. Errors: those of HttpClient::Run; Aborted if another
  // process changed the slices meanwhile. O(the slices' sums).
  absl::Status Run(Store::Joined& joined);

 private:
  // A slice as the table has it.
  struct Stored {
    SliceHead head;
    uint64_t push = 0;
    uint64_t slices = 1;
  };
  // Slices that become one, in the order of time.
  struct Group {
    std::vector<Stored> slices;  // those that were pushed twice among them
    uint64_t different = 0;      // without these
    uint64_t count = 0;          // Slice::count of all
  };
  using Groups = std::map<JoinKey, Group>;

  absl::StatusOr<std::vector<Stored>> List();
  // Joins what one question can name of each host. Returns whether there is more.
  absl::StatusOr<bool> JoinOnce(Store::Joined& joined);
  // Joins each of these groups.
  absl::Status Join(const Groups& groups);
  // Returns the pieces of slices that were joined before, by the number of the slice.
  absl::StatusOr<std::multimap<uint64_t, Piece>> PiecesOf(const Groups& groups);

  HttpClient& client_;
  const Selection& selection_;
};

}  // namespace xenoscope::store
