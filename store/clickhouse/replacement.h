// Puts slices into the place of others in ClickHouse.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/clickhouse/http_client.h"
#include "store/clickhouse/row_binary.h"
#include "store/clickhouse/stored_slices.h"
#include "store/clickhouse/sum_table.h"

namespace xenoscope::store {

// Rows of the slices that are replaced stay where they are until RemoveReplaced: one INSERT adds
// the slices that stand for them, and a row of the kind 'replaced' for each that they stand for. Of
// a joined slice it also adds the rows of the kind 'piece'. All that is of one slice is of one day,
// and ClickHouse adds what is of one day wholly or not at all.
class Replacement {
 public:
  // For slices of the range. The client outlives it. Errors: those of HttpClient::Run.
  static absl::StatusOr<Replacement> Of(HttpClient& client, const Range& range,
                                        const StoredSlices& slices);

  // Lets a slice, whose keys are in the dictionary, stand for these. Errors: those of PackNamed.
  absl::Status Add(std::span<const StoredSlice* const> replaced, const Slice& slice,
                   const Dictionary& dictionary);
  // Sends what was added. Errors: those of HttpClient::Run.
  absl::Status Send();

 private:
  using Pieces = std::multimap<uint64_t, Piece>;  // by the number of the joined slice

  Replacement(HttpClient& client, Pieces pieces) : client_(&client), pieces_(std::move(pieces)) {}

  HttpClient* client_;
  Pieces pieces_;
  absl::BitGen random_;
  RowBinaryWriter rows_;
};

}  // namespace xenoscope::store
