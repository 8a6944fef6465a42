#include "store/clickhouse/row_binary.h"

#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

constexpr unsigned kBits = 7;  // of a length in a byte
constexpr uint8_t kMore = 0x80;
constexpr unsigned kMaxShift = 28;  // five bytes: more than an answer has

}  // namespace

void RowBinaryWriter::PutLength(size_t length) {
  for (; length >= kMore; length >>= kBits) Put(static_cast<uint8_t>(length | kMore));
  Put(static_cast<uint8_t>(length));
}

void RowBinaryWriter::Put(std::string_view text) {
  PutLength(text.size());
  bytes_ += text;
}

Bytes RowBinaryReader::Blob() {
  size_t length = 0;
  unsigned shift = 0;
  uint8_t byte = kMore;
  while ((byte & kMore) != 0 && shift <= kMaxShift) {
    byte = Get<uint8_t>();
    length |= static_cast<size_t>(byte & ~kMore) << shift;
    shift += kBits;
  }
  const auto bytes = xenoscope::Slice(bytes_, at_, length);
  Advance(bytes.has_value() && (byte & kMore) == 0, length);
  return ok_ ? *bytes : Bytes();
}

std::string_view RowBinaryReader::Text() {
  const std::string_view text = AsText(Blob());
  Advance(text.size() <= kMaxName, 0);
  return ok_ ? text : std::string_view();
}

}  // namespace xenoscope::store
