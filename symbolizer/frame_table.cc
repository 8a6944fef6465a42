#include "symbolizer/frame_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "absl/strings/string_view.h"
#include "base/error.h"
#include "symbolizer/cached_table.h"

namespace xenoscope::symbolizer {
namespace {

// Its version is to be raised also when DebugInfo makes something else of a file.
constexpr CachedTableKind kKind = {
    {'X', 'E', 'N', 'O', 'F', 'R', 'M', 'S'}, 1, "a table of frames"};

struct RawFrame {
  uint32_t function = 0;
  uint32_t function_size = 0;
  uint32_t file = 0;
  uint32_t file_size = 0;
  uint32_t line = 0;
  uint32_t parent = 0;
};
static_assert(sizeof(RawFrame) == 24);

}  // namespace

absl::StatusOr<FrameTable> FrameTable::Open(Bytes bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(CachedTable cached, CachedTable::Open(bytes, kKind));
  const auto [range_count, frame_count, text_bytes, unused] = cached.counts();
  const auto starts = cached.Take(range_count, sizeof(Address));
  if (!starts) return InvalidError("it is cut off");
  const auto owners = cached.Take(range_count, sizeof(uint32_t));
  if (!owners) return InvalidError("it is cut off");
  const auto frames = cached.Take(frame_count, sizeof(RawFrame));
  const Bytes rest = cached.rest();
  if (!frames || rest.size() != text_bytes) return InvalidError("it is cut off");

  FrameTable table;
  table.ranges_ = range_count;
  table.starts_ = *starts;
  table.owners_ = *owners;
  table.frames_ = *frames;
  table.texts_ = rest;
  for (uint64_t i = 0; i < table.ranges_; ++i) {
    const bool ascending = i == 0 ? table.StartAt(0) == 0 : table.StartAt(i - 1) < table.StartAt(i);
    const uint32_t owner = table.OwnerAt(i);
    if (!ascending || (owner < kUnread && owner >= frame_count)) {
      return InvalidError("its range {} is damaged", i);
    }
  }
  for (uint64_t i = 0; i < frame_count; ++i) {
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
  std::vector<RawFrame> frames;
  frames.reserve(frames_.size());
  for (const StoredFrame& frame : frames_) {
    frames.push_back({.function = frame.function.at,
                      .function_size = frame.function.size,
                      .file = frame.file.at,
                      .file_size = frame.file.size,
                      .line = frame.line,
                      .parent = frame.parent});
  }
  return MakeCachedTable(
      kKind, {starts_.size(), frames.size(), texts_.size()},
      std::array<Bytes, 4>{std::as_bytes(std::span(starts_)), std::as_bytes(std::span(owners_)),
                           std::as_bytes(std::span(frames)), AsBytes(texts_)});
}

}  // namespace xenoscope::symbolizer
