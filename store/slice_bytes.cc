#include "store/slice_bytes.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "store/bounded_text.h"
#include "store/clickhouse/row_binary.h"
#include "store/named_sums.h"
#include "store/store.h"

namespace xenoscope::store {
namespace {

constexpr uint32_t kSliceMagic = 0x4c535358;  // "XSSL"
constexpr uint32_t kSliceVersion = 1;

void PutSliceHead(const Slice& slice, RowBinaryWriter& out) {
  const SliceHead& head = slice.head;
  out.Put(std::string_view(head.host));
  out.Put(head.begin_ns);
  out.Put(head.end_ns);
  out.Put(head.clock_error_ns);
  out.Put(head.clock_hz);
  out.Put(std::string_view(head.event));
  out.Put(static_cast<uint8_t>(head.is_time));
  out.Put(static_cast<uint8_t>(head.traced));
  out.Put(head.period);
  out.Put(slice.count);
  out.Put(slice.gaps_ns);
}

// As PutSliceHead has put it.
void GetSliceHead(RowBinaryReader& in, Slice& slice) {
  SliceHead& head = slice.head;
  head.host = BoundedName(in.Text());
  head.begin_ns = in.Get<int64_t>();
  head.end_ns = in.Get<int64_t>();
  head.clock_error_ns = in.Get<uint64_t>();
  head.clock_hz = in.Get<uint64_t>();
  head.event = BoundedName(in.Text());
  head.is_time = in.Get<uint8_t>() != 0;
  head.traced = in.Get<uint8_t>() != 0;
  head.period = in.Get<double>();
  slice.count = in.Get<uint64_t>();
  slice.gaps_ns = in.Get<int64_t>();
}

absl::Status TooLong() {
  return ExhaustedError("a slice has more than {} MB: record for a shorter time",
                        kMaxSliceBytes >> 20);
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> ToBytes(const KeyedSlice& slice) {
  XENOSCOPE_ASSIGN_OR_RETURN(const PackedSlice packed,
                             PackNamed(slice.slice.sums, slice.dictionary));
  RowBinaryWriter out;
  out.Put(kSliceMagic);
  out.Put(kSliceVersion);
  PutSliceHead(slice.slice, out);
  out.Put(std::string_view(packed.names));
  out.Put(std::string_view(packed.packed));
  if (out.bytes().size() > kMaxSliceBytes) return TooLong();
  const Bytes bytes = AsBytes(out.bytes());
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

absl::StatusOr<KeyedSlice> FromBytes(Bytes bytes) {
  if (bytes.size() > kMaxSliceBytes) return TooLong();
  RowBinaryReader in(bytes);
  if (in.Get<uint32_t>() != kSliceMagic) return InvalidError("it is no slice");
  if (const auto version = in.Get<uint32_t>(); version != kSliceVersion) {
    return InvalidError(
        "the slice is of version {}, this xenoscope reads {}: use the same version in both domains",
        version, kSliceVersion);
  }
  KeyedSlice slice;
  GetSliceHead(in, slice.slice);
  const Bytes names = in.Blob();
  const Bytes packed = in.Blob();
  if (!in.ok() || !in.AtEnd()) {
    return InvalidError("the slice is damaged: it has other bytes than one");
  }
  NamedReader reader(slice.dictionary);
  if (!reader.Read(AsText(names), packed, {}, slice.slice.sums).ok()) {
    return InvalidError("the slice is damaged: its sums are not those of a slice");
  }
  XENOSCOPE_RETURN_IF_ERROR(CheckSlice(slice.slice, slice.dictionary));
  return slice;
}

}  // namespace xenoscope::store
