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
  // `cut_at`: when a visit began, of which only the end comes; null: the visit does not count.
  explicit ClockComparison(TscRange range, std::optional<Tsc> cut_at = std::nullopt)
      : range_(range), cut_at_(cut_at) {}

  // The events whose records it takes, as a handler of trace::OrderedStream.
  static constexpr auto kEvents =
      trace::TargetsOf({Event::kRunstateChange, Event::kContinueRunning});

  void TakeNonRecord(const Item& item) {
    const bool ends = item.kind == ItemKind::kPcpuEnd;
    if (ends || item.kind == ItemKind::kLossBegin || item.kind == ItemKind::kDamaged) {
      On(item.record.pcpu) = {.seen = true, .open = {}};  // the end of the visit is not known
    }
  }
  void TakeRecord(const trace::Record& record, const trace::AnyTarget& /*target*/) {
    if (record.event != Event::kRunstateChange) return;
    const VcpuRef vcpu = trace::UnpackVcpu(record.payload.Word(0));
    const bool runs = trace::RunstateNew(record.id) == trace::Runstate::kRunning;
    const bool ran = trace::RunstateOld(record.id) == trace::Runstate::kRunning;
    const Visit here{record.pcpu, record.tsc, record.tsc, record.offset};
    if (!runs && !ran) {
      if (!IsIdle(vcpu)) Add(vcpu, here);
      return;
    }
    Pcpu& pcpu = On(record.pcpu);
    const bool is_cut = !std::exchange(pcpu.seen, true) && !runs && cut_at_;
    if (IsIdle(vcpu)) return;
    if (is_cut) pcpu.open = Running{vcpu, {record.pcpu, *cut_at_, *cut_at_, record.offset}};
    if (runs) {
      pcpu.open = Running{vcpu, here};
    } else if (pcpu.open) {
      if (pcpu.open->vcpu == vcpu) {
        pcpu.open->visit.end = record.tsc;
        Add(vcpu, pcpu.open->visit);
      }
      pcpu.open.reset();
    }
  }

  // Whether two clocks are proven to differ.
  [[nodiscard]] bool has_proof() const { return has_proof_; }
  // Whether the end of a visit may come that began before `at`, on one of so many pCPUs.
  [[nodiscard]] bool HasOpenBefore(Tsc at, size_t pcpus) const {
    const auto seen = std::ranges::count_if(pcpus_, &Pcpu::seen);
    return static_cast<size_t>(seen) < pcpus || std::ranges::any_of(pcpus_, [at](const Pcpu& each) {
             return each.open && each.open->visit.begin < at;
           });
  }
  const Pairs& pairs() const { return pairs_; }

 private:
  struct Running {
    VcpuRef vcpu;
    Visit visit;
  };

  // What is known of one pCPU now.
  struct Pcpu {
    bool seen = false;  // it is known who runs, or that nothing is known of that
    std::optional<Running> open;
  };

  Pcpu& On(PcpuId pcpu) {
    if (pcpu.value >= pcpus_.size()) pcpus_.resize(pcpu.value + 1);
    return pcpus_[pcpu.value];
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
      has_proof_ = true;
      found->second.proof_offset = (a.begin > b.begin ? a : b).offset;
    }
  }

  TscRange range_;
  std::optional<Tsc> cut_at_;
  bool has_proof_ = false;
  std::vector<Pcpu> pcpus_;                                 // by number
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

// How far the search for a proof goes on before it looks whether it has one, in cycles (some
// milliseconds).
constexpr Cycles kBetweenLooks = Cycles{1} << 24;

// Looks for visits that overlap. Where two do, one of them contradicts the other: at its begin, or
// while the other goes on.
class ProofSearch {
 public:
  // Searches from before `contradiction` on, which goes on for some time.
  ProofSearch(const trace::TraceFile& file, TscRange range, TscRange contradiction)
      : comparer_(range, Before(contradiction.begin)),
        stream_(file.Stream(Before(contradiction.begin))),
        pcpus_(stream_.open_pcpus()) {}

  // Goes on until what is open at the time has ended, and then until what began meanwhile has.
  // Returns whether there is a proof.
  bool FindsUntil(Tsc time) {
    for (int round = 0; round < 2; ++round) {
      while (now() != stream_.kEnd && !comparer_.has_proof() &&
             (now() < time || comparer_.HasOpenBefore(time, pcpus_))) {
        stream_.ForEach<false, trace::RecordOrder::kTime>(now() + kBetweenLooks,
                                                          ClockComparison::kEvents, comparer_);
      }
      time = now();
    }
    return comparer_.has_proof();
  }
  [[nodiscard]] Tsc now() const { return stream_.next_tsc(); }

 private:
  static Tsc Before(Tsc time) { return Tsc{time.value - std::min<uint64_t>(time.value, 1)}; }

  ClockComparison comparer_;
  trace::OrderedStream stream_;
  size_t pcpus_;
};

bool HasProof(const trace::TraceFile& file, TscRange range, const TimeSpans& contradictions) {
  std::optional<ProofSearch> search;
  for (const TscRange& span : contradictions.Ranges()) {
    if (!search || search->now() < span.begin) search.emplace(file, range, span);
    if (search->FindsUntil(span.end)) return true;
  }
  return false;
}

}  // namespace

std::vector<ClockSkew> CompareClocks(const trace::TraceFile& file, TscRange range,
                                     const TimeSpans& contradictions) {
  if (file.index().pcpus.size() < 2 || !HasProof(file, range, contradictions)) return {};
  ClockComparison comparer(range);
  trace::OrderedStream stream = file.Stream();
  stream.ForEach<false, trace::RecordOrder::kTime>(stream.kEnd, ClockComparison::kEvents, comparer);
  const Pairs& pairs = comparer.pairs();
  // The reference is the first of the clocks that fewest others are proven to differ from.
  std::map<PcpuId, size_t> proofs;
  for (const auto& [pcpus, pair] : pairs) {
    proofs[pcpus.first] += pair.proof_offset ? 1 : 0;
    proofs[pcpus.second] += pair.proof_offset ? 1 : 0;
  }
  if (proofs.empty()) return {};
  const PcpuId reference =
      std::min_element(proofs.begin(), proofs.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
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
