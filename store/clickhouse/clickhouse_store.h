// A store in a ClickHouse server, or in a cluster of them: any number of writers and readers.
//
// A slice is one INSERT. One that is pushed by two processes at the same time is there twice, by
// two numbers of a push; questions take the smaller one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/clickhouse/http_client.h"
#include "store/store.h"

namespace xenoscope::store {

class ClickHouseStore final : public Store {
 public:
  // Opens the store of a URL: store/clickhouse/server_url.h. Errors: as OpenStore, ParseServerUrl
  // and HttpClient::Run.
  static absl::StatusOr<std::unique_ptr<Store>> Open(std::string_view url, Access access);

  absl::StatusOr<std::vector<SliceHead>> Heads(const Selection& selection) override;
  // Joined slices are added first, with marks of those that they stand for: questions no longer
  // count these. Then their rows are removed. So an end at any moment loses nothing, and counts
  // nothing twice. One process at a time may join. Errors: as Remove.
  absl::StatusOr<Joined> Join(const Selection& selection, int64_t interval_ns) override;
  // Waits until the server has rewritten its files. Errors: FailedPrecondition where the table
  // stands for those of other databases.
  absl::StatusOr<uint64_t> Remove(const Selection& selection) override;
  // As Join, with slices that do not have the names. The numbers are different for each call.
  absl::StatusOr<uint64_t> EraseDomain(const Selection& selection,
                                       const std::string& domain) override;
  // Those of the newest push.
  absl::StatusOr<std::vector<ImageFunction>> Functions(const std::string& build_id) override;

 private:
  absl::StatusOr<bool> PushChecked(const Slice& slice, const Dictionary& dictionary) override;
  absl::Status ReadUnchecked(const Selection& selection, const ReadAhead::Sink& sink) override;
  absl::Status PutChecked(const std::string& build_id,
                          const std::vector<ImageFunction>& functions) override;

  explicit ClickHouseStore(HttpClient client) : client_(std::move(client)) {}
  // As Heads, but of slices as they were pushed, whether they were joined since or not. They have
  // a host and a time only.
  absl::StatusOr<std::vector<SliceHead>> PushedHeads(const Selection& selection);
  // Removes the rows of slices that others stand for.
  absl::Status RemoveReplaced(const Selection& selection);
  // Errors: FailedPrecondition where the table keeps no rows itself.
  absl::Status RequireOwnTable();
  // Finds the table, or makes it.
  absl::Status Prepare(Access access);
  // Runs ALTER TABLE ..., and waits for its end.
  absl::Status Mutate(const std::string& change);
  absl::StatusOr<uint64_t> Count(const std::string& sql);
  // Returns how many tables of the database have a name that fits "= 'sums_5'" or "LIKE ...".
  absl::StatusOr<uint64_t> Tables(const std::string& condition);

  HttpClient client_;
};

}  // namespace xenoscope::store
