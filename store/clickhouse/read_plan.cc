#include "store/clickhouse/read_plan.h"

#include <algorithm>
#include <span>

namespace xenoscope::store {
namespace {

uint64_t BytesOf(std::span<const StoredSize> sizes) {
  uint64_t bytes = 0;
  for (const StoredSize& size : sizes) bytes += size.bytes;
  return bytes;
}

// Appends parts of one host.
void PlanHost(const Selection& selection, std::span<const StoredSize> sizes, int64_t interval_ns,
              std::vector<Range>& parts) {
  while (!sizes.empty()) {
    size_t count = 1;
    while (count < sizes.size() && BytesOf(sizes.first(count + 1)) <= kPartBytes) ++count;
    Range& part = parts.emplace_back(Range{selection, sizes[0].host, sizes[0].host});
    Selection& of_part = part.selection;
    of_part.since_ns = std::max(of_part.since_ns, sizes[0].begin_ns);
    of_part.until_ns = std::min(of_part.until_ns, sizes[count - 1].begin_ns + interval_ns);
    sizes = sizes.subspan(count);
  }
}

}  // namespace

std::vector<Range> PlanReads(const Selection& selection, const std::vector<StoredSize>& sizes,
                             int64_t interval_ns) {
  std::vector<Range> parts;
  uint64_t bytes = kPartBytes + 1;  // of the last part
  for (size_t first = 0, end = 0; first < sizes.size(); first = end) {
    const std::string& host = sizes[first].host;
    while (end < sizes.size() && sizes[end].host == host) ++end;
    const std::span of_host = std::span(sizes).subspan(first, end - first);
    const uint64_t more = BytesOf(of_host);
    if (more > kPartBytes) {
      PlanHost(selection, of_host, interval_ns, parts);
      bytes = kPartBytes + 1;
    } else if (bytes + more > kPartBytes) {
      parts.push_back({selection, host, host});
      bytes = more;
    } else {
      parts.back().last_host = host;
      bytes += more;
    }
  }
  return parts;
}

}  // namespace xenoscope::store
