#include "symbolizer/cached_table.h"

#include <cstddef>

#include "base/crc.h"
#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

struct Head {
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t crc = 0;  // CRC-32 of everything after this field
  CachedTableCounts counts{};
};
static_assert(sizeof(Head) == 48);

constexpr size_t kBeforeCrc = offsetof(Head, counts);

}  // namespace

absl::StatusOr<CachedTable> CachedTable::Open(Bytes bytes, const CachedTableKind& kind) {
  const auto head = Load<Head>(bytes, 0);
  if (!head || head->magic != kind.magic) return InvalidError("it is not {}", kind.name);
  if (head->version != kind.version) return InvalidError("it is of version {}", head->version);
  if (Crc32(bytes.subspan(kBeforeCrc)) != head->crc) return InvalidError("its checksum is wrong");
  return CachedTable(head->counts, bytes.subspan(sizeof(Head)));
}

std::optional<Bytes> CachedTable::Take(uint64_t count, uint64_t size) {
  if (count > rest_.size() / size) return std::nullopt;
  const Bytes taken = rest_.first(count * size);
  rest_ = rest_.subspan(count * size);
  return taken;
}

std::string MakeCachedTable(const CachedTableKind& kind, const CachedTableCounts& counts,
                            std::span<const Bytes> arrays) {
  Head head{.magic = kind.magic, .version = kind.version, .counts = counts};
  const auto head_text = [&head] { return AsText(std::as_bytes(std::span(&head, 1))); };
  size_t size = sizeof head;
  for (const Bytes array : arrays) size += array.size();
  std::string bytes;
  bytes.reserve(size);
  bytes += head_text();
  for (const Bytes array : arrays) bytes += AsText(array);
  head.crc = Crc32(AsBytes(bytes).subspan(kBeforeCrc));
  bytes.replace(0, sizeof head, head_text());
  return bytes;
}

}  // namespace xenoscope::symbolizer
