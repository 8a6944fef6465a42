#include "store/clickhouse/slice_source.h"

#include <fmt/format.h>

#include <future>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "store/clickhouse/row_binary.h"
#include "store/clickhouse/sum_table.h"

namespace xenoscope::store {
namespace {

absl::StatusOr<StoredSlices> Fetch(HttpClient& client, const Range& range, std::string memory) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::string answer, client.Run(SelectSlices(range, SliceColumns::kAll),
                                                            {}, std::move(memory)));
  std::optional<StoredSlices> slices = StoredSlices::Parse(std::move(answer));
  if (!slices) return DamagedAnswer(client);
  return *std::move(slices);
}

}  // namespace

absl::StatusOr<std::vector<StoredSize>> ParseSizes(const std::string& answer,
                                                   const HttpClient& client) {
  RowBinaryReader in(AsBytes(answer));
  std::vector<StoredSize> sizes;
  while (in.ok() && !in.AtEnd()) {
    StoredSize& size = sizes.emplace_back();
    size.host = in.Text();
    size.begin_ns = in.Get<int64_t>();
    size.bytes = in.Get<uint64_t>();
  }
  if (!in.ok()) return DamagedAnswer(client);
  return sizes;
}

absl::StatusOr<std::vector<StoredSize>> DailySizes(HttpClient& client, const Selection& selection) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::string answer,
      client.Run(fmt::format("SELECT host, intDiv(begin_ns, {0}) * {0} AS day_ns, sum(bytes) FROM "
                             "{1} WHERE kind = 'slice' AND {2} GROUP BY host, day_ns ORDER BY "
                             "host, day_ns FORMAT RowBinary",
                             kMaxSliceNs, kSumTable, Where({selection}))));
  return ParseSizes(answer, client);
}

absl::Status ForEachPart(
    const HttpClient& client, const std::vector<Range>& parts,
    const std::function<absl::Status(const Range&, const StoredSlices&)>& visit) {
  // What visits a slice may itself ask through `client`.
  XENOSCOPE_ASSIGN_OR_RETURN(HttpClient own, HttpClient::Open(client.url()));
  std::future<absl::StatusOr<StoredSlices>> next;
  std::string memory;
  const auto fetch = [&](size_t part) {
    if (part == parts.size()) return;
    next = std::async(std::launch::async,
                      [&own, &range = parts[part], memory = std::move(memory)]() mutable {
                        return Fetch(own, range, std::move(memory));
                      });
  };
  fetch(0);
  for (size_t part = 0; part < parts.size(); ++part) {
    absl::StatusOr<StoredSlices> slices = next.get();
    XENOSCOPE_RETURN_IF_ERROR(slices.status());
    fetch(part + 1);
    XENOSCOPE_RETURN_IF_ERROR(visit(parts[part], *slices));
    memory = StoredSlices::TakeAnswer(*std::move(slices));
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::store
