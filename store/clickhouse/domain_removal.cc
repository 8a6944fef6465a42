#include "store/clickhouse/domain_removal.h"

#include <fmt/format.h>

#include <vector>

#include "absl/random/random.h"
#include "base/error.h"
#include "store/bounded_text.h"
#include "store/clickhouse/replacement.h"
#include "store/clickhouse/row_binary.h"
#include "store/clickhouse/slice_source.h"
#include "store/clickhouse/sum_table.h"
#include "store/domain_eraser.h"
#include "store/named_sums.h"

namespace xenoscope::store {
namespace {

// Names of images and functions of Xen.
absl::StatusOr<std::vector<std::string>> NamesOfXenIn(HttpClient& client,
                                                      const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client.Run(
          fmt::format("SELECT DISTINCT arrayJoin([parts.image, parts.function]) FROM {} ARRAY "
                      "JOIN parts WHERE kind = 'slice' AND {} AND parts.mode = 'xen' FORMAT "
                      "RowBinary",
                      kSumTable, Where({selection}))));
  RowBinaryReader in(AsBytes(answer));
  std::vector<std::string> names;
  while (in.ok() && !in.AtEnd()) names.push_back(BoundedName(in.Text()));
  if (!in.ok()) return DamagedAnswer(client);
  return names;
}

// Counts up from a number that others do not have.
DomainEraser::NextName NewNames() {
  return [next = absl::Uniform<uint64_t>(absl::BitGen())]() mutable -> absl::StatusOr<std::string> {
    return fmt::format("(removed {})", next++);
  };
}

// Erases the domain from slices of a part. Adds their number to `erased`.
absl::Status EraseIn(HttpClient& client, const Range& range, const StoredSlices& slices,
                     DomainEraser& eraser, uint64_t& erased) {
  XENOSCOPE_ASSIGN_OR_RETURN(Replacement replacement, Replacement::Of(client, range, slices));
  Dictionary dictionary;
  NamedReader reader(dictionary);
  const std::vector<StoredSlice>& all = slices.all();
  for (size_t first = 0, end = 0; first < all.size(); first = end) {
    std::vector<const StoredSlice*> same;
    do {
      same.push_back(&all[end++]);
    } while (end < all.size() && all[end].again);
    const StoredSlice& stored = all[first];
    Slice slice{stored.head, {}, stored.count, stored.gaps_ns};
    XENOSCOPE_RETURN_IF_ERROR(reader.Read(stored.names, stored.packed, {}, slice.sums));
    XENOSCOPE_RETURN_IF_ERROR(CheckSlice(slice, dictionary));
    XENOSCOPE_ASSIGN_OR_RETURN(const bool found, eraser.Erase(slice.sums, dictionary));
    if (!found) continue;
    XENOSCOPE_RETURN_IF_ERROR(replacement.Add(same, slice, dictionary));
    ++erased;
  }
  return replacement.Send();
}

}  // namespace

absl::StatusOr<uint64_t> EraseDomainNames(HttpClient& client, const Selection& selection,
                                          const std::string& domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> kept, NamesOfXenIn(client, selection));
  XENOSCOPE_ASSIGN_OR_RETURN(DomainEraser eraser, DomainEraser::Make(domain, kept, NewNames()));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<StoredSize> sizes, DailySizes(client, selection));
  uint64_t erased = 0;
  XENOSCOPE_RETURN_IF_ERROR(ForEachPart(client, PlanReads(selection, sizes, kMaxSliceNs),
                                        [&](const Range& range, const StoredSlices& slices) {
                                          return EraseIn(client, range, slices, eraser, erased);
                                        }));
  return erased;
}

}  // namespace xenoscope::store
