#include "symbolizer/frame_table.h"

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/string_view.h"
#include "base/crc.h"
#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

// The version of the format, to be raised with every change of the content, including what
// DebugInfo makes of a file.
constexpr uint32_t kVersion = 1;
constexpr std::array<char, 8> kMagic = {'X', 'E', 'N', 'O', 'F', 'R', 'M', 'S'};

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t crc = 0;  // CRC-32 of everything after the header
  uint64_t ranges = 0;
  uint64_t frames = 0;
  uint64_t texts = 0;
  uint64_t reserved = 0;
};
static_assert(sizeof(Header) == 48);

constexpr size_t kBeforeCrc = offsetof(Header, ranges);

struct RawFrame {
  uint32_t function = 0;
  uint32_t function_size = 0;
  uint32_t file = 0;
  uint32_t file_size = 0;
  uint32_t line = 0;
  uint32_t parent = 0;
};
static_assert(sizeof(RawFrame) == 24);

constexpr size_t kRangeSize = sizeof(Address) + sizeof(uint32_t);

// Takes `count` items of `size` bytes off the front.
std::optional<Bytes> Take(Bytes& bytes, uint64_t count, uint64_t size) {
  if (count > bytes.size() / size) return std::nullopt;
  const Bytes taken = bytes.first(count * size);
  bytes = bytes.subspan(count * size);
  return taken;
}

template <typename T>
void Append(std::string& to, const T* from, size_t count) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): values as bytes
  to.append(reinterpret_cast<const char*>(from), count * sizeof(T));
}

}  // namespace

absl::StatusOr<FrameTable> FrameTable::Open(Bytes bytes) {
  const auto header = Load<Header>(bytes, 0);
  if (!header || header->magic != kMagic) return InvalidError("it is not a table of frames");
  if (header->version != kVersion) return InvalidError("it is of version {}", header->version);
  if (Crc32(bytes.subspan(kBeforeCrc)) != header->crc) return InvalidError("its checksum is wrong");
  Bytes rest = bytes.subspan(sizeof(Header));
  const auto starts = Take(rest, header->ranges, sizeof(Address));
  if (!starts) return InvalidError("it is cut off");
  const auto owners = Take(rest, header->ranges, sizeof(uint32_t));
  if (!owners) return InvalidError("it is cut off");
  const auto frames = Take(rest, header->frames, sizeof(RawFrame));
  if (!frames || rest.size() != header->texts) return InvalidError("it is cut off");

  FrameTable table;
  table.ranges_ = header->ranges;
  table.starts_ = *starts;
  table.owners_ = *owners;
  table.frames_ = *frames;
  table.texts_ = rest;
  for (uint64_t i = 0; i < table.ranges_; ++i) {
    const bool ascending = i == 0 ? table.StartAt(0) == 0 : table.StartAt(i - 1) < table.StartAt(i);
    const uint32_t owner = table.OwnerAt(i);
    if (!ascending || (owner < kUnread && owner >= header->frames)) {
      return InvalidError("its range {} is damaged", i);
    }
  }
  for (uint64_t i = 0; i < header->frames; ++i) {
    const auto frame = LoadUnchecked<RawFrame>(frames->data() + i * sizeof(RawFrame));
    // Parents come first, so that no chain of them is endless.
    if (!Slice(rest, frame.function, frame.function_size) ||
        !Slice(rest, frame.file, frame.file_size) ||
        (frame.parent != kNoFrame && frame.parent >= i)) {
      return InvalidError("its frame {} is damaged", i);
    }
  }
  if (table.ranges_ == 0) return InvalidError("it is empty");
  return table;
}

Address FrameTable::StartAt(uint64_t range) const {
  return LoadUnchecked<Address>(starts_.data() + range * sizeof(Address));
}

uint32_t FrameTable::OwnerAt(uint64_t range) const {
  if (ranges_ == 0) return kUnread;
  return LoadUnchecked<uint32_t>(owners_.data() + range * sizeof(uint32_t));
}

std::string_view FrameTable::TextAt(uint32_t at, uint32_t size) const {
  return AsText(texts_).substr(at, size);
}

uint64_t FrameTable::RangeOf(Address address) const {
  uint64_t begin = 0;  // the first range begins at 0
  uint64_t end = ranges_;
  while (end - begin > 1) {
    const uint64_t middle = begin + (end - begin) / 2;
    (StartAt(middle) <= address ? begin : end) = middle;
  }
  return begin;
}

bool FrameTable::Find(Address address, std::vector<CodeFrame>& frames) const {
  frames.clear();
  uint32_t at = OwnerAt(RangeOf(address));
  if (at == kUnread) return false;
  while (at != kNoFrame && frames.size() < kMaxFrames) {
    const auto frame = LoadUnchecked<RawFrame>(frames_.data() + uint64_t{at} * sizeof(RawFrame));
    frames.push_back({TextAt(frame.function, frame.function_size),
                      TextAt(frame.file, frame.file_size), frame.line});
    at = frame.parent;
  }
  return true;
}

std::vector<Address> FrameTable::StartsIn(Address begin, Address end) const {
  std::vector<Address> starts = {begin};
  for (uint64_t i = RangeOf(begin) + 1; i < ranges_ && StartAt(i) < end; ++i) {
    starts.push_back(StartAt(i));
  }
  return starts;
}

uint32_t FrameTableWriter::Frame(Text function, Text file, uint32_t line, uint32_t parent) {
  const StoredFrame frame = {function, file, line, parent};
  const auto next = static_cast<uint32_t>(frames_.size());
  const auto [found, is_new] = numbers_.try_emplace(frame, next);
  if (is_new) frames_.push_back(frame);
  return found->second;
}

void FrameTableWriter::Add(Address start, const std::vector<CodeFrame>& frames) {
  uint32_t frame = FrameTable::kNoFrame;
  for (size_t i = frames.size(); i-- > 0;) {
    frame = Frame(Keep(frames[i].function), Keep(frames[i].file), frames[i].line, frame);
  }
  Add(start, frame);
}

void FrameTableWriter::Add(Address start, uint32_t frame) {
  if (owners_.back() == frame) return;
  starts_.push_back(start);
  owners_.push_back(frame);
}

FrameTableWriter::Text FrameTableWriter::Keep(std::string_view text) {
  const auto known = kept_.find(absl::string_view(text.data(), text.size()));
  if (known != kept_.end()) return known->second;
  const Text kept = {static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(text.size())};
  texts_ += text;
  kept_.emplace(text, kept);
  return kept;
}

std::string FrameTableWriter::Finish() && {
  if (texts_.size() > std::numeric_limits<uint32_t>::max() ||
      frames_.size() >= FrameTable::kUnread) {
    return {};
  }
  Header header;
  header.ranges = starts_.size();
  header.frames = frames_.size();
  header.texts = texts_.size();
  std::string bytes;
  bytes.reserve(sizeof header + starts_.size() * kRangeSize + frames_.size() * sizeof(RawFrame) +
                texts_.size());
  Append(bytes, &header, 1);
  Append(bytes, starts_.data(), starts_.size());
  Append(bytes, owners_.data(), owners_.size());
  for (const StoredFrame& frame : frames_) {
    const RawFrame stored = {.function = frame.function.at,
                             .function_size = frame.function.size,
                             .file = frame.file.at,
                             .file_size = frame.file.size,
                             .line = frame.line,
                             .parent = frame.parent};
    Append(bytes, &stored, 1);
  }
  bytes += texts_;
  header.crc = Crc32(AsBytes(bytes).subspan(kBeforeCrc));
  std::string head;
  Append(head, &header, 1);
  bytes.replace(0, head.size(), head);
  return bytes;
}

}  // namespace xenoscope::symbolizer
