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

// Returns the most bytes of the part with this number.
uint64_t Limit(const PartBytes& bytes, size_t number) {
  uint64_t limit = bytes.first;
  for (size_t i = 0; i < number && limit < bytes.most; ++i) limit *= 2;
  return std::min(limit, bytes.most);
}

// Appends parts of one host.
void PlanHost(const Selection& selection, std::span<const StoredSize> sizes, int64_t interval_ns,
              const PartBytes& bytes, std::vector<Range>& parts) {
  while (!sizes.empty()) {
    const uint64_t limit = Limit(bytes, parts.size());
    size_t count = 1;
    while (count < sizes.size() && BytesOf(sizes.first(count + 1)) <= limit) ++count;
    Range& part = parts.emplace_back(Range{selection, sizes[0].host, sizes[0].host});
    Selection& of_part = part.selection;
    of_part.since_ns = std::max(of_part.since_ns, sizes[0].begin_ns);
    of_part.until_ns = std::min(of_part.until_ns, sizes[count - 1].begin_ns + interval_ns);
    sizes = sizes.subspan(count);
  }
}

}  // namespace

std::vector<Range> PlanReads(const Selection& selection, const std::vector<StoredSize>& sizes,
                             int64_t interval_ns, PartBytes bytes) {
  std::vector<Range> parts;
  uint64_t left = 0;  // of the last part
  for (size_t first = 0, end = 0; first < sizes.size(); first = end) {
    const std::string& host = sizes[first].host;
    while (end < sizes.size() && sizes[end].host == host) ++end;
    const std::span of_host = std::span(sizes).subspan(first, end - first);
    const uint64_t more = BytesOf(of_host);
    const uint64_t limit = Limit(bytes, parts.size());  // of the next part
    if (!parts.empty() && more <= left) {
      parts.back().last_host = host;
      left -= more;
    } else if (more <= limit) {
      parts.push_back({selection, host, host});
      left = limit - more;
    } else {
      PlanHost(selection, of_host, interval_ns, bytes, parts);
      left = 0;
    }
  }
  return parts;
}

}  // namespace xenoscope::store
