#include "store/clickhouse/row_binary.h"

#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

constexpr unsigned kBits = 7;  // of a length in a byte
constexpr uint8_t kMore = 0x80;
constexpr unsigned kMaxShift = 14;  // three bytes: more than kMaxName needs

}  // namespace

void RowBinaryWriter::Put(std::string_view text) {
  size_t length = text.size();
  for (; length >= kMore; length >>= kBits) Put(static_cast<uint8_t>(length | kMore));
  Put(static_cast<uint8_t>(length));
  bytes_ += text;
}

std::string_view RowBinaryReader::Text() {
  size_t length = 0;
  unsigned shift = 0;
  uint8_t byte = kMore;
  while ((byte & kMore) != 0 && shift <= kMaxShift) {
    byte = Get<uint8_t>();
    length |= static_cast<size_t>(byte & ~kMore) << shift;
    shift += kBits;
  }
  const auto text = xenoscope::Slice(bytes_, at_, length);
  Advance(text.has_value() && length <= kMaxName && (byte & kMore) == 0, length);
  return ok_ ? AsText(*text) : std::string_view();
}

}  // namespace xenoscope::store
