#include "correlate/clocks.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "trace/ordered_stream.h"
#include "trace/record.h"

namespace xenoscope::correlate {
namespace {

using trace::Event;
using trace::Item;
using trace::ItemKind;

// The number of equal parts of the trace that are compared, to find whether a difference changes.
constexpr size_t kParts = 16;
// The number of pairs of pCPUs that are compared; others are left out.
constexpr size_t kMaxPairs = 4096;

// Ranges of differences that are excluded. The two ends of a range are not excluded.
class ExcludedSkews {
 public:
  void Add(int64_t begin, int64_t end) {
    begin = std::max(begin, -kUnboundedSkew);
    end = std::min(end, kUnboundedSkew);
    if (begin >= end) return;
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second > begin) {
      const auto before = std::prev(next);
      if (before->second >= end) return;
      begin = before->first;
      next = before;
    }
    while (next != ranges_.end() && next->first < end) {
      end = std::max(end, next->second);
      next = ranges_.erase(next);
    }
    ranges_.emplace(begin, end);
  }
  void Add(const ExcludedSkews& other) {
    for (const auto& [begin, end] : other.ranges_) Add(begin, end);
  }
  bool Has(int64_t value) const {
    const auto next = ranges_.lower_bound(value);
    return next != ranges_.begin() && std::prev(next)->second > value;
  }
  // Returns the possible range next to 0; nothing when that is beyond kMaxSkew.
  std::optional<SkewRange> SmallestPossible() const {
    std::optional<SkewRange> nearest;
    const auto distance = [](const SkewRange& range) {
      return std::max({int64_t{0}, range.min, -range.max});
    };
    const auto offer = [&](SkewRange range) {
      if (distance(range) > kMaxSkew) return;
      if (!nearest || distance(range) < distance(*nearest)) nearest = range;
    };
    int64_t from = -kUnboundedSkew;
    for (const auto& [begin, end] : ranges_) {
      offer({from, begin});
      from = end;
    }
    offer({from, kUnboundedSkew});
    return nearest;
  }

 private:
  std::map<int64_t, int64_t> ranges_;  // begin -> end; they do not touch
};

// A vCPU runs on a pCPU from begin to end, or something is done to it there (begin == end).
struct Visit {
  PcpuId pcpu;
  Tsc begin;
  Tsc end;
  uint64_t offset = 0;  // byte of the visit's first record
};

// What is known of two clocks; that of the pCPU with the lower number comes first.
struct Pair {
  std::array<ExcludedSkews, kParts> parts;
  std::optional<uint64_t> proof_offset;

  ExcludedSkews Combined() const {
    ExcludedSkews combined;
    for (const ExcludedSkews& part : parts) combined.Add(part);
    return combined;
  }
};
using Pairs = std::map<std::pair<PcpuId, PcpuId>, Pair>;

int64_t SignedDistance(Tsc a, Tsc b) { return static_cast<int64_t>(a.value - b.value); }

class ClockComparison {
 public:
  explicit ClockComparison(TscRange range) : range_(range) {}

  // The events whose records it takes, as a handler of trace::OrderedStream.
  static constexpr trace::EventTargets<trace::AnyTarget> kEvents = [] {
    trace::EventTargets<trace::AnyTarget> events{};
    events[static_cast<size_t>(Event::kRunstateChange)] = &trace::kAnyTarget;
    events[static_cast<size_t>(Event::kContinueRunning)] = &trace::kAnyTarget;
    return events;
  }();

  void TakeNonRecord(const Item& item) {
    if (item.kind == ItemKind::kLossBegin || item.kind == ItemKind::kDamaged) {
      Open(item.record.pcpu).reset();  // the end of the visit is not known
    }
  }
  void TakeRecord(const trace::Record& record, const trace::AnyTarget& /*target*/) {
    if (record.event != Event::kRunstateChange) return;
    const VcpuRef vcpu = trace::UnpackVcpu(record.payload.Word(0));
    if (IsIdle(vcpu)) return;
    const bool runs = trace::RunstateNew(record.id) == trace::Runstate::kRunning;
    const bool ran = trace::RunstateOld(record.id) == trace::Runstate::kRunning;
    const Visit here{record.pcpu, record.tsc, record.tsc, record.offset};
    std::optional<Running>& open = Open(record.pcpu);
    if (runs) {
      open = Running{vcpu, here};
    } else if (!ran) {
      Add(vcpu, here);
    } else if (open) {
      if (open->vcpu == vcpu) {
        open->visit.end = record.tsc;
        Add(vcpu, open->visit);
      }
      open.reset();
    }
  }

  const Pairs& pairs() const { return pairs_; }

 private:
  struct Running {
    VcpuRef vcpu;
    Visit visit;
  };

  std::optional<Running>& Open(PcpuId pcpu) {
    if (pcpu.value >= open_.size()) open_.resize(pcpu.value + 1);
    return open_[pcpu.value];
  }

  void Add(VcpuRef vcpu, const Visit& visit) {
    std::deque<Visit>& visits = visits_[vcpu];
    while (!visits.empty() && visit.end - visits.front().end > kUnboundedSkew) visits.pop_front();
    const Cycles length = range_.Length() / kParts + 1;
    const size_t part = std::min<size_t>((visit.end - range_.begin) / length, kParts - 1);
    for (const Visit& other : visits) {
      if (other.pcpu != visit.pcpu) Compare(other, visit, part);
    }
    visits.push_back(visit);
  }

  void Compare(const Visit& a, const Visit& b, size_t part) {
    const bool ordered = a.pcpu < b.pcpu;
    const Visit& low = ordered ? a : b;
    const Visit& high = ordered ? b : a;
    const auto key = std::pair(low.pcpu, high.pcpu);
    auto found = pairs_.find(key);
    if (found == pairs_.end()) {
      if (pairs_.size() >= kMaxPairs) return;
      found = pairs_.emplace(key, Pair{}).first;
    }
    // The visits would overlap with such a difference of high's clock from low's.
    const int64_t begin = SignedDistance(high.begin, low.end);
    const int64_t end = SignedDistance(high.end, low.begin);
    found->second.parts[part].Add(begin, end);
    if (begin < 0 && end > 0 && !found->second.proof_offset) {
      found->second.proof_offset = (a.begin > b.begin ? a : b).offset;
    }
  }

  TscRange range_;
  std::vector<std::optional<Running>> open_;                // by pCPU
  absl::flat_hash_map<VcpuRef, std::deque<Visit>> visits_;  // those not older than kUnboundedSkew
  Pairs pairs_;
};

bool IsBounded(SkewRange range) {
  return range.min > -kUnboundedSkew && range.max < kUnboundedSkew;
}

ClockSkew Describe(PcpuId reference, PcpuId pcpu, const Pair& pair) {
  ClockSkew skew{.reference = reference,
                 .pcpu = pcpu,
                 .kind = SkewKind::kUnknown,
                 .first = {},
                 .last = {},
                 .proof_offset = pair.proof_offset.value_or(0)};
  const bool swapped = pcpu < reference;
  const auto turned = [&](SkewRange range) {
    return swapped ? SkewRange{-range.max, -range.min} : range;
  };
  const auto combined = pair.Combined().SmallestPossible();
  const auto first = pair.parts.front().SmallestPossible();
  std::optional<SkewRange> last;
  size_t bounded = 0;
  size_t fitting = 0;  // bounded parts that agree with one difference for the whole trace
  for (const ExcludedSkews& part : pair.parts) {
    const auto left = part.SmallestPossible();
    if (!left || !IsBounded(*left)) continue;
    last = left;
    ++bounded;
    if (combined && combined->min <= left->max && left->min <= combined->max) ++fitting;
  }
  // A part's range may be possible by chance, if few visits exclude little. So may the range of all
  // parts, if the clocks drift: then most parts have other ranges.
  const bool drifts = first && IsBounded(*first) && last;
  if (combined && (!drifts || 2 * fitting >= bounded)) {
    skew.kind = SkewKind::kConstant;
    skew.first = skew.last = turned(*combined);
  } else if (drifts) {
    skew.kind = SkewKind::kDrifting;
    skew.first = turned(*first);
    skew.last = turned(*last);
  }
  return skew;
}

}  // namespace

std::vector<ClockSkew> CompareClocks(const trace::TraceFile& file, TscRange range) {
  if (file.index().pcpus.size() < 2) return {};
  ClockComparison comparer(range);
  trace::OrderedStream stream = file.Stream();
  stream.ForEach<false, trace::RecordOrder::kTime>(stream.kEnd, ClockComparison::kEvents, comparer);
  const Pairs& pairs = comparer.pairs();
  // The reference is the first of the clocks with the fewest contradictions.
  std::map<PcpuId, size_t> contradictions;
  for (const auto& [pcpus, pair] : pairs) {
    contradictions[pcpus.first] += pair.proof_offset ? 1 : 0;
    contradictions[pcpus.second] += pair.proof_offset ? 1 : 0;
  }
  if (contradictions.empty()) return {};
  const PcpuId reference =
      std::min_element(contradictions.begin(), contradictions.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; })
          ->first;
  std::vector<ClockSkew> skews;
  std::vector<PcpuId> reported;
  for (const bool direct : {true, false}) {
    for (const auto& [pcpus, pair] : pairs) {
      const auto [low, high] = pcpus;
      const bool is_direct = low == reference || high == reference;
      if (!pair.proof_offset || is_direct != direct) continue;
      const auto is_reported = [&](PcpuId pcpu) {
        return std::find(reported.begin(), reported.end(), pcpu) != reported.end();
      };
      if (!direct && (is_reported(low) || is_reported(high))) continue;
      const PcpuId pcpu = high == reference ? low : high;
      skews.push_back(Describe(high == reference ? high : low, pcpu, pair));
      reported.push_back(pcpu);
    }
  }
  return skews;
}

const char* ToString(SkewKind kind) {
  switch (kind) {
    case SkewKind::kConstant:
      return "constant";
    case SkewKind::kDrifting:
      return "drifting";
    case SkewKind::kUnknown:
      return "unknown";
  }
  return "?";
}

}  // namespace xenoscope::correlate
