#include "store/byte_planes.h"

#include <zstd.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace xenoscope::store {
namespace {

// A slice is written once, by a process that has just read a recording for seconds.
constexpr int kLevel = 9;
constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

template <typename Value>
using WordOf = std::conditional_t<sizeof(Value) == sizeof(uint64_t), uint64_t, uint32_t>;

// Differences of both signs as small numbers: 0, -1, 1, -2 ... become 0, 1, 2, 3 ... (zigzag).
uint32_t Folded(uint32_t difference) { return difference << 1 ^ (0 - (difference >> 31)); }
uint32_t Unfolded(uint32_t folded) { return folded >> 1 ^ (0 - (folded & 1)); }

}  // namespace

void PlaneWriter::Number(uint32_t value) { Column<uint32_t>(std::span(&value, 1)); }

template <typename Value>
requires std::is_arithmetic_v<Value>
void PlaneWriter::Column(std::span<const Value> values) {
  size_t at = bytes_.size();
  bytes_.resize(at + values.size() * sizeof(Value));
  for (unsigned shift = 0; shift < 8 * sizeof(Value); shift += 8) {
    for (const Value value : values) {
      bytes_[at++] = static_cast<char>(std::bit_cast<WordOf<Value>>(value) >> shift);
    }
  }
}

void PlaneWriter::Differences(std::span<const uint32_t> values) {
  std::vector<uint32_t> differences;
  differences.reserve(values.size());
  uint32_t before = 0;
  for (const uint32_t value : values) {
    differences.push_back(Folded(value - before));
    before = value;
  }
  Column<uint32_t>(differences);
}

absl::StatusOr<std::string> PlaneWriter::Compressed() const {
  std::string out(ZSTD_compressBound(bytes_.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes_.data(), bytes_.size(), kLevel);
  if (ZSTD_isError(size) != 0) return InternalError("zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

void PlaneReader::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

absl::Status PlaneReader::Open(Bytes compressed) {
  const unsigned long long size = ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  if (context_ == nullptr) context_.reset(ZSTD_createDCtx());
  if (context_ == nullptr) return ExhaustedError("no memory");
  at_ = 0;
  if (size <= kMaxBytes) {  // errors are larger numbers
    bytes_.resize(size);
    const size_t got = ZSTD_decompressDCtx(context_.get(), bytes_.data(), bytes_.size(),
                                           compressed.data(), compressed.size());
    if (ZSTD_isError(got) == 0 && got == size) return absl::OkStatus();
  }
  bytes_.clear();
  return InvalidError("the store is damaged: the sums of a slice are not what zstd has written");
}

bool PlaneReader::Skip(size_t bytes) {
  if (bytes > left()) return false;
  at_ += bytes;
  return true;
}

bool PlaneReader::Number(uint32_t& value) {
  std::vector<uint32_t> one;
  if (!Column(1, one)) return false;
  value = one[0];
  return true;
}

template <typename Value>
requires std::is_arithmetic_v<Value>
bool PlaneReader::Column(size_t count, std::vector<Value>& values) {
  using Word = WordOf<Value>;
  if (count > left() / sizeof(Value)) return false;
  values.resize(count);
  const std::byte* const from = bytes_.data() + at_;
  size_t i = 0;
  // Compilers make vector instructions of a loop of fixed length.
  constexpr size_t kTogether = 16;
  for (; i + kTogether <= count; i += kTogether) {
    std::array<Word, kTogether> words{};
    for (size_t plane = 0; plane < sizeof(Value); ++plane) {
      for (size_t each = 0; each < kTogether; ++each) {
        words[each] |= std::to_integer<Word>(from[plane * count + i + each]) << (8 * plane);
      }
    }
    std::memcpy(&values[i], words.data(), sizeof words);
  }
  for (; i < count; ++i) {
    Word word = 0;
    for (size_t plane = 0; plane < sizeof(Value); ++plane) {
      word |= std::to_integer<Word>(from[plane * count + i]) << (8 * plane);
    }
    values[i] = std::bit_cast<Value>(word);
  }
  at_ += count * sizeof(Value);
  return true;
}

bool PlaneReader::Differences(size_t count, std::vector<uint32_t>& values) {
  if (!Column(count, values)) return false;
  uint32_t value = 0;
  for (uint32_t& each : values) each = value += Unfolded(each);
  return true;
}

template void PlaneWriter::Column(std::span<const uint32_t> values);
template void PlaneWriter::Column(std::span<const uint64_t> values);
template void PlaneWriter::Column(std::span<const float> values);
template void PlaneWriter::Column(std::span<const double> values);
template bool PlaneReader::Column(size_t count, std::vector<uint32_t>& values);
template bool PlaneReader::Column(size_t count, std::vector<uint64_t>& values);
template bool PlaneReader::Column(size_t count, std::vector<float>& values);
template bool PlaneReader::Column(size_t count, std::vector<double>& values);

}  // namespace xenoscope::store
