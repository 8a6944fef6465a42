#include "store/slice_bytes.h"

#include <zstd.h>

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "store/bounded_text.h"
#include "store/store.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

constexpr uint32_t kSliceMagic = 0x4c535358;  // "XSSL"
constexpr uint32_t kSliceVersion = 1;
constexpr int kSliceCompression = 6;
constexpr auto kLastContextKind = correlate::ContextKind::kUnsampledSwitch;
static_assert(static_cast<size_t>(kLastContextKind) + 1 == correlate::kContextKinds);

template <typename T>
concept Scalar = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <typename T>
concept KeyNumber =
    std::same_as<T, VcpuNumber> || std::same_as<T, ContextNumber> || std::same_as<T, CodeNumber>;

class SliceWriter {
 public:
  template <Scalar T>
  void Put(T value) {
    const Bytes bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <KeyNumber T>
  void Put(T number) {
    Put(number.value);
  }
  void Put(bool flag) { Put(static_cast<uint8_t>(flag ? 1 : 0)); }
  // Names are bounded.
  void Put(const std::string& text) {
    Put(static_cast<uint16_t>(text.size()));
    const Bytes bytes = AsBytes(text);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  void Put(const VcpuKey& key) {
    Put(key.domain);
    Put(key.number);
  }
  void Put(const ContextKey& key) {
    Put(static_cast<uint8_t>(key.kind));
    Put(key.exit);
    Put(key.has_both_modes);
  }
  void Put(const CodeKey& key) {
    Put(static_cast<uint8_t>(key.mode));
    Put(key.image);
    Put(key.function);
  }
  void Put(const Slice& slice) {
    const SliceHead& head = slice.head;
    Put(head.host);
    Put(head.begin_ns);
    Put(head.end_ns);
    Put(head.clock_error_ns);
    Put(head.clock_hz);
    Put(head.event);
    Put(head.is_time);
    Put(head.traced);
    Put(head.period);
    Put(slice.count);
    Put(slice.gaps_ns);
  }
  template <typename Key, typename Number>
  void PutKeys(const KeyTable<Key, Number>& table) {
    Put(static_cast<uint32_t>(table.all().size()));
    for (const Key& key : table.all()) Put(key);
  }
  template <typename Sums>
  void PutRows(const std::vector<Sums>& rows) {
    Put(static_cast<uint32_t>(rows.size()));
    for (const Sums& row : rows) {
      std::apply([this](const auto&... fields) { (this->Put(fields), ...); },
                 Table<Sums>::Fields(row));
    }
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads what a SliceWriter has written. From the first item that is not there or cannot be, all are
// empty, and `good` is false.
class SliceReader {
 public:
  explicit SliceReader(Bytes bytes) : left_(bytes) {}

  template <Scalar T>
  void Get(T& value) {
    const std::optional<T> loaded = good_ ? Load<T>(left_, 0) : std::nullopt;
    good_ = loaded.has_value();
    value = loaded.value_or(T{});
    if (good_) left_ = left_.subspan(sizeof(T));
  }
  void Get(bool& flag) { flag = Small(1) == 1; }
  void Get(std::string& text) {
    uint16_t length = 0;
    Get(length);
    const std::optional<Bytes> bytes = Slice(left_, length);
    good_ = good_ && bytes.has_value() && length <= kMaxName;
    text = good_ ? std::string(AsText(*bytes)) : std::string();
    if (good_) left_ = left_.subspan(length);
    good_ = good_ && BoundedName(text) == text;
  }
  void Get(VcpuNumber& number) { GetNumber(number, vcpus_, kAllVcpus.value); }
  void Get(ContextNumber& number) { GetNumber(number, contexts_, kAllContexts.value); }
  void Get(CodeNumber& number) { GetNumber(number, codes_, std::nullopt); }

  void Get(VcpuKey& key) {
    Get(key.domain);
    Get(key.number);
  }
  void Get(ContextKey& key) {
    key.kind = static_cast<correlate::ContextKind>(Small(static_cast<uint8_t>(kLastContextKind)));
    Get(key.exit);
    Get(key.has_both_modes);
  }
  void Get(CodeKey& key) {
    key.mode = static_cast<Mode>(Small(static_cast<uint8_t>(Mode::kXen)));
    Get(key.image);
    Get(key.function);
  }
  void Get(store::Slice& slice) {
    SliceHead& head = slice.head;
    Get(head.host);
    Get(head.begin_ns);
    Get(head.end_ns);
    Get(head.clock_error_ns);
    Get(head.clock_hz);
    Get(head.event);
    Get(head.is_time);
    Get(head.traced);
    Get(head.period);
    Get(slice.count);
    Get(slice.gaps_ns);
  }
  void GetKeys(Dictionary& dictionary) {
    vcpus_ = GetTable<VcpuKey>(dictionary.vcpus);
    contexts_ = GetTable<ContextKey>(dictionary.contexts);
    codes_ = GetTable<CodeKey>(dictionary.codes);
  }
  template <typename Sums>
  void GetRows(std::vector<Sums>& rows) {
    uint32_t count = 0;
    Get(count);
    // As many rows as there are bytes for: memory is bounded by those.
    for (uint32_t i = 0; i < count && good_; ++i) {
      Sums& row = rows.emplace_back();
      auto&& fields = Table<Sums>::Fields(row);
      std::apply([this](auto&... each) { (this->Get(each), ...); }, fields);
    }
  }

  // Returns whether all items were there, and no bytes are left.
  [[nodiscard]] bool Complete() const { return good_ && left_.empty(); }

 private:
  static std::optional<Bytes> Slice(Bytes bytes, size_t length) {
    return xenoscope::Slice(bytes, 0, length);
  }

  // Returns a byte of at most `most`.
  uint8_t Small(uint8_t most) {
    uint8_t value = 0;
    Get(value);
    good_ = good_ && value <= most;
    return good_ ? value : uint8_t{0};
  }
  // Gets a number below `count`, or the one that stands for all.
  template <typename Number>
  void GetNumber(Number& number, uint32_t count, std::optional<uint32_t> all) {
    Get(number.value);
    good_ = good_ && (number.value < count || number.value == all);
    if (!good_) number = {};
  }
  // Gets keys, each of which is there once. Returns how many.
  template <typename Key, typename Number>
  uint32_t GetTable(KeyTable<Key, Number>& table) {
    uint32_t count = 0;
    Get(count);
    for (uint32_t i = 0; i < count && good_; ++i) {
      Key key;
      Get(key);
      good_ = good_ && table.Intern(key).value == i;
    }
    return count;
  }

  Bytes left_;
  bool good_ = true;
  uint32_t vcpus_ = 0;  // numbers of keys
  uint32_t contexts_ = 0;
  uint32_t codes_ = 0;
};

absl::Status TooLong() {
  return ExhaustedError(
      "a slice has more than {} MB, or {} MB compressed: record for a shorter time",
      kMaxPlainSliceBytes >> 20, kMaxSliceBytes >> 20);
}

absl::StatusOr<std::vector<std::byte>> Decompress(Bytes bytes) {
  const auto size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    return InvalidError("it is no slice");
  }
  if (bytes.size() > kMaxSliceBytes || size > kMaxPlainSliceBytes) return TooLong();
  std::vector<std::byte> plain(size);
  if (ZSTD_decompress(plain.data(), plain.size(), bytes.data(), bytes.size()) != size) {
    return InvalidError("the slice is damaged: it cannot be decompressed");
  }
  return plain;
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> ToBytes(const KeyedSlice& slice) {
  SliceWriter writer;
  writer.Put(kSliceMagic);
  writer.Put(kSliceVersion);
  writer.Put(slice.slice);
  writer.PutKeys(slice.dictionary.vcpus);
  writer.PutKeys(slice.dictionary.contexts);
  writer.PutKeys(slice.dictionary.codes);
  (void)ForEachTable([&]<typename Sums>() {
    writer.PutRows(slice.slice.sums.*Table<Sums>::kRows);
    return absl::OkStatus();
  });
  const std::vector<std::byte>& plain = writer.bytes();
  if (plain.size() > kMaxPlainSliceBytes) return TooLong();
  std::vector<std::byte> packed(ZSTD_compressBound(plain.size()));
  const size_t size =
      ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), kSliceCompression);
  if (ZSTD_isError(size) != 0) return InternalError("zstd: {}", ZSTD_getErrorName(size));
  if (size > kMaxSliceBytes) return TooLong();
  packed.resize(size);
  return packed;
}

absl::StatusOr<KeyedSlice> FromBytes(Bytes bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::byte> plain, Decompress(bytes));
  SliceReader reader(plain);
  uint32_t magic = 0;
  uint32_t version = 0;
  reader.Get(magic);
  reader.Get(version);
  if (magic != kSliceMagic) return InvalidError("it is no slice");
  if (version != kSliceVersion) {
    return InvalidError(
        "the slice is of version {}, this xenoscope reads {}: use the same version in both domains",
        version, kSliceVersion);
  }
  KeyedSlice slice;
  reader.Get(slice.slice);
  reader.GetKeys(slice.dictionary);
  (void)ForEachTable([&]<typename Sums>() {
    reader.GetRows(slice.slice.sums.*Table<Sums>::kRows);
    return absl::OkStatus();
  });
  if (!reader.Complete()) return InvalidError("the slice is damaged: it has other bytes than one");
  XENOSCOPE_RETURN_IF_ERROR(CheckSlice(slice.slice, slice.dictionary));
  return slice;
}

}  // namespace xenoscope::store
