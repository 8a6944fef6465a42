#include "store/clickhouse/slice_join.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <string_view>

#include "absl/random/random.h"
#include "base/error.h"
#include "store/clickhouse/conditions.h"
#include "store/clickhouse/group_reader.h"

namespace xenoscope::store {
namespace {

// Groups are joined together until they have so many: an answer then needs some 100 MB at most.
constexpr uint64_t kNamedTogether = 1024;

}  // namespace

absl::StatusOr<std::vector<SliceJoin::Stored>> SliceJoin::List() {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client_.Run(
          fmt::format("SELECT {}, push, slices FROM {} ORDER BY event, host, begin_ns, push FORMAT "
                      "RowBinary",
                      kSliceColumns, Slices(selection_))));
  RowBinaryReader in(AsBytes(answer));
  std::vector<Stored> slices;
  while (in.ok() && !in.AtEnd()) {
    Stored& stored = slices.emplace_back();
    stored.head = ReadHead(in);
    stored.push = in.Get<uint64_t>();
    stored.slices = in.Get<uint64_t>();
  }
  if (!in.ok()) return DamagedAnswer(client_);
  return slices;
}

absl::StatusOr<std::multimap<uint64_t, Piece>> SliceJoin::PiecesOf(const Groups& groups) {
  std::multimap<uint64_t, Piece> pieces;
  std::vector<uint64_t> joined;
  for (const auto& [key, group] : groups) {
    for (const Stored& stored : group.slices) {
      if (stored.slices > 1) joined.push_back(stored.push);
    }
  }
  if (joined.empty()) return pieces;
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client_.Run(
          fmt::format("SELECT push, replaced, piece_begin_ns, piece_end_ns FROM {} WHERE {} "
                      "AND push IN ({}) FORMAT RowBinary",
                      kSumTable, WherePieces(selection_), fmt::join(joined, ", "))));
  RowBinaryReader in(AsBytes(answer));
  while (in.ok() && !in.AtEnd()) {
    const auto push = in.Get<uint64_t>();
    Piece piece{.replaced = in.Get<uint64_t>()};
    piece.begin_ns = in.Get<int64_t>();
    piece.end_ns = in.Get<int64_t>();
    pieces.emplace(push, piece);
  }
  if (!in.ok()) return DamagedAnswer(client_);
  return pieces;
}

absl::Status SliceJoin::Join(const Groups& groups) {
  if (groups.empty()) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const auto pieces, PiecesOf(groups));
  Selection of_groups = selection_;
  std::set<std::string> hosts;
  std::vector<uint64_t> pushes;
  for (const auto& [key, group] : groups) {
    hosts.insert(key.host);
    const Stored* before = nullptr;
    for (const Stored& stored : group.slices) {
      if (before == nullptr || before->head.begin_ns != stored.head.begin_ns) {
        pushes.push_back(stored.push);
      }
      before = &stored;
    }
  }
  of_groups.hosts.assign(hosts.begin(), hosts.end());
  // By number: slices that come meanwhile are not replaced, so they must not be added.
  const std::string where =
      fmt::format("{} AND push IN ({})", Where(of_groups), fmt::join(pushes, ", "));
  XENOSCOPE_ASSIGN_OR_RETURN(
      GroupReader reader,
      GroupReader::Ask(where, {}, GroupReader::Crosses::kAll,
                       [this](std::string_view sql) { return client_.Run(sql); }));
  Dictionary dictionary;
  Slice slice;
  RowBinaryWriter rows;
  absl::BitGen random;
  size_t read = 0;
  while (reader.Next(dictionary, slice)) {
    XENOSCOPE_RETURN_IF_ERROR(CheckSlice(slice, dictionary));
    const auto group = groups.find(JoinKeyOf(slice.head));
    if (group == groups.end() || group->second.count != slice.count) break;
    ++read;
    const auto push = absl::Uniform<uint64_t>(random);
    AppendSlice(slice, dictionary, push, rows);
    for (const Stored& stored : group->second.slices) {
      Piece piece{.replaced = stored.push};
      if (stored.slices == 1) {
        piece.begin_ns = stored.head.begin_ns;
        piece.end_ns = stored.head.end_ns;
      }
      AppendPiece(slice.head, piece, push, rows);
      AppendMark(slice.head, piece, push, rows);
      const auto [first, last] = pieces.equal_range(stored.push);
      for (auto at = first; at != last; ++at) AppendPiece(slice.head, at->second, push, rows);
    }
  }
  if (!reader.ok()) return DamagedAnswer(client_);
  if (read != groups.size()) {
    return absl::AbortedError(
        "another process joins or removes slices of this store; try again when it has ended");
  }
  return client_.Run(InsertSums(), rows.bytes()).status();
}

absl::Status SliceJoin::Run(Store::Joined& joined) {
  bool cut = true;
  while (cut) {
    XENOSCOPE_ASSIGN_OR_RETURN(cut, JoinOnce(joined));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SliceJoin::JoinOnce(Store::Joined& joined) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<Stored> stored, List());
  Groups all;
  bool cut = false;
  for (Stored& each : stored) {
    Group& group = all[JoinKeyOf(each.head)];
    const bool again =
        !group.slices.empty() && group.slices.back().head.begin_ns == each.head.begin_ns;
    if (!again) {
      if (group.different == kMostNamedPushes) {
        cut = true;
        continue;
      }
      ++group.different;
      group.count += each.slices;
    }
    group.slices.push_back(std::move(each));
  }
  Groups together;
  uint64_t named = 0;
  for (auto& [key, group] : all) {
    if (group.different < 2) continue;
    joined.from += group.different;
    ++joined.to;
    named += group.slices.size();
    together.emplace(key, std::move(group));
    if (named < kNamedTogether) continue;
    XENOSCOPE_RETURN_IF_ERROR(Join(together));
    together.clear();
    named = 0;
  }
  XENOSCOPE_RETURN_IF_ERROR(Join(together));
  return cut;
}

}  // namespace xenoscope::store
