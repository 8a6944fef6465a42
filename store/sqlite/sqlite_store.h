// A store in a SQLite file: no server, one writer at a time, any number of readers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_dictionary.h"
#include "store/store.h"

namespace xenoscope::store {

class SqliteStore final : public Store {
 public:
  // Opens the file. Errors: as OpenStore.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path, Access access);

  absl::StatusOr<std::vector<SliceHead>> Heads(const Selection& selection) override;
  absl::StatusOr<uint64_t> Remove(const Selection& selection) override;
  absl::StatusOr<Joined> Join(const Selection& selection, int64_t interval_ns) override;
  absl::StatusOr<uint64_t> EraseDomain(const Selection& selection,
                                       const std::string& domain) override;
  absl::StatusOr<std::vector<ImageFunction>> Functions(const std::string& build_id) override;

 private:
  // A slice's head, and its number in the file.
  struct StoredHead {
    int64_t id = 0;
    SliceHead head;
    uint64_t count = 1;  // Slice::count and gaps_ns
    int64_t gaps_ns = 0;
  };

  absl::StatusOr<bool> PushChecked(const Slice& slice, const Dictionary& dictionary) override;
  absl::Status ReadUnchecked(const Selection& selection, const ReadAhead::Sink& sink) override;
  absl::Status PutChecked(const std::string& build_id,
                          const std::vector<ImageFunction>& functions) override;

  explicit SqliteStore(Connection connection) : connection_(std::move(connection)) {}
  absl::StatusOr<std::vector<StoredHead>> StoredHeads(const Selection& selection) const;
  // Adds the slice, and returns its number in the file.
  absl::StatusOr<int64_t> Insert(const Slice& slice, KeyWriter& keys) const;
  // Returns the heads of the selected slices as they were pushed, before they were joined.
  absl::StatusOr<std::vector<SliceHead>> PushedHeads(const Selection& selection) const;
  // Joins the selected slices, which are of one interval, as Join does.
  absl::StatusOr<Joined> JoinInterval(const Selection& selection) const;
  // Removes the slices, and adds the one that was joined of them.
  absl::Status Replace(const std::vector<StoredHead>& slices, const Slice& joined,
                       KeyWriter& keys) const;
  // Returns the numbers of the selected slices in the file.
  absl::StatusOr<std::vector<int64_t>> StoredIds(const Selection& selection) const;

  Connection connection_;
};

}  // namespace xenoscope::store
