#include "store/clickhouse/replacement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace xenoscope::store {

absl::StatusOr<Replacement> Replacement::Of(HttpClient& client, const Range& range,
                                            const StoredSlices& slices) {
  Pieces pieces;
  const bool has_joined =
      std::ranges::any_of(slices.all(), [](const StoredSlice& each) { return each.count > 1; });
  if (!has_joined) return Replacement(client, std::move(pieces));
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client.Run(fmt::format("SELECT push, replaced, piece_begin_ns, piece_end_ns FROM {} WHERE "
                             "kind = 'piece' AND {} FORMAT RowBinary",
                             kSumTable, Where(range))));
  RowBinaryReader in(AsBytes(answer));
  while (in.ok() && !in.AtEnd()) {
    const auto push = in.Get<uint64_t>();
    Piece piece{.replaced = in.Get<uint64_t>()};
    piece.begin_ns = in.Get<int64_t>();
    piece.end_ns = in.Get<int64_t>();
    pieces.emplace(push, piece);
  }
  if (!in.ok()) return DamagedAnswer(client);
  return Replacement(client, std::move(pieces));
}

absl::Status Replacement::Add(std::span<const StoredSlice* const> replaced, const Slice& slice,
                              const Dictionary& dictionary) {
  const auto push = absl::Uniform<uint64_t>(random_);
  XENOSCOPE_RETURN_IF_ERROR(AppendSlice(slice, dictionary, push, rows_));
  for (const StoredSlice* const each : replaced) {
    AppendMark(slice.head, each->push, push, rows_);
    const auto [first, last] = pieces_.equal_range(each->push);
    for (auto at = first; at != last; ++at) AppendPiece(slice.head, at->second, push, rows_);
    if (slice.count == 1 || each->count > 1) continue;
    const Piece piece{each->push, each->head.begin_ns, each->head.end_ns};
    AppendPiece(slice.head, piece, push, rows_);
  }
  return absl::OkStatus();
}

absl::Status Replacement::Send() {
  if (rows_.bytes().empty()) return absl::OkStatus();
  XENOSCOPE_RETURN_IF_ERROR(client_->Run(InsertSums(), rows_.bytes()).status());
  rows_ = {};
  return absl::OkStatus();
}

}  // namespace xenoscope::store
