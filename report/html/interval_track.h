// The intervals of one row of the page's timeline, packed as bytes, so that a million of them are
// some megabytes. Where there are too many, short ones are shown together: an entry for several
// neighbours says how many they are and how long each kind of them lasted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "report/html/packed.h"

namespace xenoscope::report {

// Numbers as LEB128, as PutNumber puts them: a million intervals have some millions, written and
// read again several times.
class NumberColumn {
 public:
  // Appends the numbers. O(1) amortised for each.
  template <size_t kCount>
  void Put(const std::array<uint64_t, kCount>& values) {
    if (capacity_ - size_ < kCount * kMostNumberBytes) [[unlikely]] {
      Grow(kCount * kMostNumberBytes);
    }
    char* at = bytes_.get() + size_;
    for (const uint64_t value : values) at = WriteNumber(value, at);
    size_ = static_cast<size_t>(at - bytes_.get());
  }
  // Reads the number at the byte `at`, where one begins, and moves `at` behind it. O(1).
  [[nodiscard]] uint64_t Take(size_t& at) const {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at++]);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  [[nodiscard]] std::string_view bytes() const { return {bytes_.get(), size_}; }

 private:
  // Makes room for so many bytes more.
  void Grow(size_t more);

  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Signed numbers as NumberColumn has them: those near 0 are short.
inline uint64_t Zigzag(uint64_t difference) {
  return (difference << 1U) ^ (static_cast<int64_t>(difference) < 0 ? ~uint64_t{0} : 0);
}
inline uint64_t Unzigzag(uint64_t number) { return (number >> 1U) ^ (~(number & 1U) + 1); }

// What an interval counts as in an entry for several: the page gives each a colour of its own.
inline constexpr size_t kTrackParts = 3;
enum class TrackPart : uint8_t { kFirst, kSecond, kThird, kNone };

// How short intervals are kept.
struct ShortIntervals {
  uint64_t below = 0;  // cycles: shorter ones are shown together; 0: each is shown
  // The binary logarithm of the unit in which times are written, in cycles.
  unsigned shift = 0;
  // An entry for several is at most so long.
  [[nodiscard]] uint64_t Longest() const { return 16 * below; }
  bool operator==(const ShortIntervals&) const = default;
};

class IntervalTrack {
 public:
  // Times are written in units of 2^shift cycles (ShortIntervals::shift).
  explicit IntervalTrack(unsigned shift = 0) : shift_(shift) {}

  // Adds the interval of `length` cycles from `begin` on. `code` says what it is, below 2^29.
  // Intervals come in the order of time; others are kept, too. O(1).
  void Add(uint32_t code, TrackPart part, uint64_t begin, uint64_t length, ShortIntervals together);
  // Does what Add does and returns true, if the interval is one more of several short ones that the
  // last entry has; on a busy host nearly all are. O(1).
  bool AddToLast(TrackPart part, uint64_t begin, uint64_t length, ShortIntervals together) {
    const bool joins = open_.head == 0 && length < together.below &&
                       Continues(open_, begin, begin + length, together);
    if (!joins) return false;
    if (part != TrackPart::kNone) open_.parts[static_cast<size_t>(part)] += length;
    open_.end = begin + length;
    ++open_.count;
    return true;
  }

  // Puts short intervals together that were kept so far. O(entries).
  void Thin(ShortIntervals together);
  // An interval, or several together.
  struct Entry {
    uint64_t begin = 0;  // cycles
    uint64_t end = 0;
    uint64_t head = 0;  // of an interval: its first number; 0: several
    uint64_t count = 0;
    std::array<uint64_t, kTrackParts> parts{};
    // The part of an interval.
    [[nodiscard]] TrackPart part() const { return static_cast<TrackPart>((head - 1) & 3U); }
  };
  // Adds an entry of a track like this. O(1).
  void Append(const Entry& entry, ShortIntervals together) {
    Join(entry, together, open_, [this](const Entry& complete) { Write(complete); });
  }
  // Calls visit(entry) for each entry. O(entries).
  template <typename F>
  void ForEachEntry(F visit) const {
    ForEachEntry(columns_, shift_, visit);
    if (open_.count > 0) visit(open_);
  }

  // The numbers of all entries, LEB128, by what they are: like beside like compresses better.
  // - kHeads: of an interval (code << 2 | part) + 1; of several 0;
  // - kGaps: the time since the end of the entry before, zigzag;
  // - kLengths: the entry's length; of several also their number, and the time of each of
  //   kTrackParts parts.
  // Times are in units of 2^shift cycles, rounded down.
  enum Column : uint8_t { kHeads, kGaps, kLengths };
  static constexpr size_t kColumns = 3;
  using Columns = std::array<NumberColumn, kColumns>;
  // Returns the columns; after it nothing is added.
  const Columns& Finish();
  [[nodiscard]] size_t entries() const { return entries_ + (open_.count > 0 ? 1 : 0); }

 private:
  // Whether a short entry for that range can be put together with the one that is open.
  [[nodiscard]] static bool Continues(const Entry& open, uint64_t begin, uint64_t end,
                                      ShortIntervals together) {
    return open.count > 0 && begin >= open.end && begin - open.end < together.below &&
           end - open.begin <= together.Longest();
  }
  // Calls visit(entry) for each of the columns' entries.
  template <typename F>
  static void ForEachEntry(const Columns& columns, unsigned shift, F visit) {
    std::array<size_t, kColumns> at{};
    const auto take = [&](Column column) { return columns[column].Take(at[column]); };
    uint64_t end = 0;  // in the units of the columns
    while (at[kHeads] < columns[kHeads].bytes().size()) {
      Entry entry{.head = take(kHeads), .count = 1};
      const uint64_t begin = end + Unzigzag(take(kGaps));
      end = begin + take(kLengths);
      entry.begin = begin << shift;
      entry.end = end << shift;
      if (entry.head == 0) {
        entry.count = take(kLengths);
        for (uint64_t& part : entry.parts) part = take(kLengths) << shift;
      }
      visit(entry);
    }
  }
  static void AddParts(const Entry& from, Entry& into) {
    if (from.head == 0) {
      for (size_t i = 0; i < kTrackParts; ++i) into.parts[i] += from.parts[i];
    } else if (from.part() != TrackPart::kNone) {
      into.parts[static_cast<size_t>(from.part())] += from.end - from.begin;
    }
  }
  // Puts the entry together with `open` if both are short neighbours; otherwise calls write(entry)
  // for what is complete.
  template <typename F>
  static void Join(const Entry& entry, ShortIntervals together, Entry& open, F write) {
    const bool is_short = entry.head == 0 || entry.end - entry.begin < together.below;
    if (!is_short || !Continues(open, entry.begin, entry.end, together)) {
      if (open.count > 0) write(open);
      open = {};
      if (is_short) {
        open = entry;
      } else {
        write(entry);
      }
      return;
    }
    if (open.head != 0) {
      Entry several{.begin = open.begin, .end = open.end, .count = open.count};
      AddParts(open, several);
      open = several;
    }
    AddParts(entry, open);
    open.end = entry.end;
    open.count += entry.count;
  }
  void Write(const Entry& entry);
  // Writes what is open.
  void Close();

  Columns columns_;
  unsigned shift_;  // ShortIntervals::shift of what is in columns_
  size_t entries_ = 0;
  uint64_t end_ = 0;  // of the last entry in columns_, in units
  Entry open_;        // short intervals that the next one may join; none if its count is 0
};

}  // namespace xenoscope::report
