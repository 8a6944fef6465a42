#include "trace/named_vcpus.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::trace {
namespace {

// Where more are named, hardly any pCPUs have nothing to do with each other; and no trace may use
// up memory.
constexpr size_t kMaxNames = 1 << 16;

constexpr EventTargets<AnyTarget> kCrossingEvents = [] {
  EventTargets<AnyTarget> events{};
  for (size_t i = 0; i < kEventCount; ++i) {
    if (Crosses(static_cast<Event>(i))) events[i] = &kAnyTarget;
  }
  return events;
}();

// The words that named vCPUs last, by a hash: most pCPUs have few vCPUs at a time.
class RecentNames {
 public:
  [[nodiscard]] bool Has(uint32_t word) const { return words_[PlaceOf(word)] == word; }
  void Add(uint32_t word) { words_[PlaceOf(word)] = word; }

 private:
  static constexpr size_t kPlaces = 16;
  // Domains have the same few vCPUs.
  [[nodiscard]] static size_t PlaceOf(uint32_t word) { return (word ^ word >> 16) % kPlaces; }

  // A free place has a word whose place it is not.
  std::array<uint32_t, kPlaces> words_{1};
};

// Notes the vCPUs that one pCPU's trace names. Takes one item at a time.
struct NamesSink {
  static constexpr bool kReportsRunningVcpu = false;

  std::vector<NamedVcpus::Name>& names;
  RecentNames& recent;
  bool& complete;  // becomes false where an item concerns anything else
  Record record{};

  Record& Slot(PcpuId pcpu) {
    record.pcpu = pcpu;
    return record;
  }
  bool CommitRecord(const std::optional<VcpuRef>& /*ran*/, const AnyTarget& /*target*/) {
    Take(record);
    return false;
  }
  bool Commit(const Item& item) {
    if (item.kind == ItemKind::kWrap) return true;
    if (item.kind != ItemKind::kRecord) {
      complete = false;
    } else if (Crosses(item.record.event)) {
      Take(item.record);
    }
    return false;
  }
  void Take(const Record& crossing) {
    if (crossing.event != Event::kRunstateChange && crossing.event != Event::kContinueRunning) {
      complete = false;
      return;
    }
    const uint32_t word = crossing.payload.Word(0);
    if (recent.Has(word)) return;
    recent.Add(word);
    names.push_back({crossing.pcpu, UnpackVcpu(word)});
    complete &= names.size() <= kMaxNames;
  }
};

// Goes through the items of two cursors at a time.
class Search {
 public:
  Search(std::span<const Cursor* const> cursors, Tsc through)
      : cursors_(cursors), through_(through) {}

  std::optional<NamedVcpus> Run() {
    for (Lane& lane : lanes_) BeginNext(lane);
    while (complete_ && lanes_[0].ahead && lanes_[1].ahead) {
      const size_t stopped = Cursor::SkimBoth(
          {&*lanes_[0].ahead, &*lanes_[1].ahead}, through_,
          [this](size_t lane, uint32_t word) { return lanes_[lane].recent.Has(word); });
      Advance(lanes_[stopped]);
    }
    for (Lane& lane : lanes_) {
      while (complete_ && lane.ahead) Advance(lane);
    }
    if (!complete_) return std::nullopt;
    return std::move(found_);
  }

 private:
  struct Lane {
    const Cursor* begin = nullptr;
    std::optional<Cursor> ahead;  // a copy that has gone on; nothing: there are no more cursors
    RecentNames recent{};
  };

  // Takes the next item that may name a vCPU, and passes over those before; after the last one,
  // begins with the next cursor.
  void Advance(Lane& lane) {
    if (!TakeOne(lane)) BeginNext(lane);
  }
  // Begins with the next cursor that has more than one item up to the time, behind the first one.
  void BeginNext(Lane& lane) {
    while (complete_ && next_ < cursors_.size()) {
      lane.begin = cursors_[next_++];
      if (lane.begin->tsc() > through_) continue;
      lane.ahead.emplace(*lane.begin);
      lane.recent = {};
      if (TakeOne(lane)) return;
    }
    lane.ahead.reset();
  }
  // Returns whether there may be more items, unless the search is in vain.
  bool TakeOne(Lane& lane) {
    NamesSink sink{found_.names, lane.recent, complete_};
    lane.ahead->Take<false, RecordOrder::kTime>(sink, through_, through_, kCrossingEvents);
    if (!lane.ahead->done() && lane.ahead->tsc() <= through_) return true;
    found_.bytes += lane.begin->BytesTo(*lane.ahead);
    return false;
  }

  std::span<const Cursor* const> cursors_;
  Tsc through_;
  size_t next_ = 0;  // the index in cursors_
  std::array<Lane, 2> lanes_;
  NamedVcpus found_;
  bool complete_ = true;
};

}  // namespace

std::optional<NamedVcpus> FindNamedVcpus(std::span<const Cursor* const> cursors, Tsc through) {
  return Search(cursors, through).Run();
}

}  // namespace xenoscope::trace
