// The records of each PV vCPU: hypercalls by name, traps by vector, the other PV events, and the
// guest's addresses at traps and emulated instructions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/per_vcpu.h"
#include "analysis/summary/eip_lists.h"
#include "analysis/summary/registry.h"
#include "base/hypercalls.h"
#include "trace/names.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

constexpr uint32_t kHypercalls = 64;  // xen/include/public/xen.h: 0..42, arch-specific 48..55
constexpr uint32_t kTrapVectors = 256;

constexpr std::array kOthers = {
    Event::kPvPageFault,          Event::kPvForcedInvalidOp,  Event::kPvEmulatePrivop,
    Event::kPvEmulate4gb,         Event::kPvMathStateRestore, Event::kPvPagingFixup,
    Event::kPvGdtLdtMappingFault, Event::kPvPtwrEmulation,    Event::kPvPtwrEmulationPae,
};

// Returns the event's name in xenalyze's summary.
constexpr std::string_view SummaryName(Event event) {
  switch (event) {
    case Event::kPvPageFault:
      return "page_fault";
    case Event::kPvEmulatePrivop:
      return "emulate privop";
    case Event::kPvEmulate4gb:
      return "emulate 4G";
    case Event::kPvMathStateRestore:
      return "math state restore";
    case Event::kPvPagingFixup:
      return "paging fixup";
    case Event::kPvGdtLdtMappingFault:
      return "gdt/ldt mapping fault";
    case Event::kPvPtwrEmulation:
      return "ptwr";
    case Event::kPvPtwrEmulationPae:
      return "ptwr(pae)";
    default:
      return trace::Info(event).name;
  }
}

// Returns the guest's address in a record that has one: the first word, except in records about
// page tables, where an entry and an address come first.
Address Eip(const trace::Record& record) {
  const bool wide = trace::Is64(record.id);
  uint32_t word = 0;
  if (record.event == Event::kPvPtwrEmulation) word = wide ? 4 : 2;
  if (record.event == Event::kPvPtwrEmulationPae) word = wide ? 4 : 3;
  return wide ? record.payload.Word64(word) : record.payload.Word(word);
}

// Hypercalls whose arguments Xen records (xen/arch/x86/trace.c __trace_hypercall, 4.17): the
// sub-operation, the number of operations of a batch, or both.
struct Arguments {
  uint32_t call;
  int operation;  // index of the argument with the operation; -1: none
  int batch;      // index of the argument with the batch's size; -1: none
};
constexpr std::array kArguments = {
    Arguments{hypercall::kMmuUpdate, -1, 1},   Arguments{hypercall::kMulticall, -1, 1},
    Arguments{hypercall::kGrantTableOp, 0, 2}, Arguments{hypercall::kVcpuOp, 0, -1},
    Arguments{hypercall::kMmuextOp, -1, 1},    Arguments{hypercall::kSchedOp, 0, -1}};

// Index in kArguments of each hypercall.
constexpr uint8_t kNoArguments = 0xff;
constexpr std::array<uint8_t, kHypercalls + 1> kHypercallPlaces = [] {
  std::array<uint8_t, kHypercalls + 1> places{};
  places.fill(kNoArguments);
  for (size_t i = 0; i < kArguments.size(); ++i) places[kArguments[i].call] = i & 0xff;
  return places;
}();

// MMU_UPDATE_PREEMPTED: the bit of a count that says that the call is continued.
constexpr uint32_t kPreempted = 0x80000000;

// Returns the index of the payload's word with the argument, 0 when there is none. Two bits for
// each argument, from bit 20 of word 0 on, say how many words it has.
uint8_t WordOf(uint32_t tags, int argument) {
  if (argument < 0) return 0;
  uint32_t word = 1;
  for (int i = 0; i < argument; ++i) word += tags >> (2 * i) & 3;
  return (tags >> (2 * argument) & 3) == 0 ? 0 : static_cast<uint8_t>(word);
}

constexpr GroupInfo kPvUnattributedGroup{"pv_unattributed", "PV events", SectionLevel::kTrace,
                                         GroupLayout::kTable, RowSubject::kVcpus};
constexpr GroupInfo kPvGroup{"pv", "PV events", SectionLevel::kVcpu};
constexpr GroupInfo kHypercallsGroup{"hypercalls", "Hypercalls", SectionLevel::kVcpu};
constexpr GroupInfo kTrapsGroup{"traps", "Traps, by vector", SectionLevel::kVcpu};
constexpr GroupInfo kPvEipGroup{"pv_eip", "Traps and emulated instructions, by address",
                                SectionLevel::kVcpu, GroupLayout::kLongList};

class PvEvents final : public Mergeable<PvEvents> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    const auto record = [&](Event event, RecordCallback* take) {
      subscriptions.Record(event, UpdateScope::kMetrics, take);
    };
    record(Event::kPvHypercall, Call<&PvEvents::OnOldHypercall>);
    record(Event::kPvHypercallV2, Call<&PvEvents::OnHypercall>);
    record(Event::kPvHypercallSubcall, Call<&PvEvents::OnSubcall>);
    record(Event::kPvTrap, Call<&PvEvents::OnTrap>);
    for (const Event event : kOthers) subscriptions.Record(event);
  }

  // Takes records that have no method of their own.
  void OnRecord(const AttributedRecord& attributed) override {
    Counts* counts = CountsOf(attributed);
    if (counts == nullptr) [[unlikely]] {
      return CreateCounts<&PvEvents::OnRecord>(attributed);
    }
    const trace::Record& record = attributed.record;
    ++counts->others[Place(record.event)];
    if (record.event == Event::kPvMathStateRestore) return;
    counts->eips.Add(Eip(record), static_cast<uint32_t>(record.event), Cycles{0}, eips_budget_);
  }

  void Merge(PvEvents& earlier) {
    unattributed_ += earlier.unattributed_;
    eips_budget_ = earlier.eips_budget_;
    vcpus_.MergeFrom(earlier.vcpus_, [this](Counts& counts, Counts& more) {
      AddCounts(more.hypercalls, counts.hypercalls);
      AddCounts(more.subcalls, counts.subcalls);
      AddCounts(more.traps, counts.traps);
      AddCounts(more.others, counts.others);
      AddCounts(more.batched, counts.batched);
      for (size_t i = 0; i < counts.operations.size(); ++i) {
        AddCounts(more.operations[i], counts.operations[i]);
      }
      counts.eips.Prepend(more.eips, eips_budget_);
    });
  }

  std::vector<EntryBudget*> Budgets() override { return {&eips_budget_}; }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kPvUnattributedGroup, kPvGroup, kHypercallsGroup, kTrapsGroup, kPvEipGroup};
  }
  void DescribeTrace(const TraceMetadata& /*metadata*/, Section& out) const override {
    AddCount(out.AddGroup(kPvUnattributedGroup), "of an unknown vCPU", unattributed_);
  }

  void DescribeVcpu(VcpuRef vcpu, const TraceMetadata& metadata, Section& out) const override {
    const Counts* counts = vcpus_.Find(vcpu);
    if (counts == nullptr) return;
    MetricGroup& pv = out.AddGroup(kPvGroup);
    uint64_t hypercalls = 0;
    uint64_t subcalls = 0;
    uint64_t traps = 0;
    for (const uint64_t count : counts->hypercalls) hypercalls += count;
    for (const uint64_t count : counts->subcalls) subcalls += count;
    for (const uint64_t count : counts->traps) traps += count;
    AddCount(pv, "hypercall", hypercalls + subcalls);
    AddCount(pv, "hypercall (subcall)", subcalls);
    AddCount(pv, "trap", traps);
    for (const Event event : kOthers) {
      AddCount(pv, std::string(SummaryName(event)), counts->others[Place(event)]);
    }
    DescribeCalls(*counts, out.AddGroup(kHypercallsGroup));
    MetricGroup& vectors = out.AddGroup(kTrapsGroup);
    for (uint32_t vector = 0; vector < kTrapVectors; ++vector) {
      AddCount(vectors, VectorName(vector), counts->traps[vector]);
    }
    counts->eips.Describe(vcpu.domain, metadata, TagName, out.AddGroup(kPvEipGroup));
  }

 private:
  static constexpr Event kFirstOther = Event::kPvHypercall;
  static constexpr size_t kEvents = 32;
  static constexpr uint32_t kOperations = 32;
  static constexpr uint32_t kNoOperation = kOperations + 1;
  using HypercallCounts = std::array<uint64_t, kHypercalls + 1>;
  struct Counts {
    HypercallCounts hypercalls{};
    HypercallCounts subcalls{};
    std::array<uint64_t, kTrapVectors> traps{};
    std::array<uint64_t, kEvents> others{};
    // Counts by index in kArguments.
    std::array<std::array<uint64_t, kNoOperation + 1>, kArguments.size()> operations{};
    std::array<uint64_t, kArguments.size()> batched{};
    EipList eips;  // tag: Event, or kTrapTag | vector
  };
  static constexpr uint32_t kTrapTag = 0x10000;

  // Returns null for a vCPU's first record, and where the record's vCPU is not known:
  // CreateCounts() takes both.
  Counts* CountsOf(const AttributedRecord& attributed) const {
    return attributed.vcpu != nullptr ? vcpus_.Known(attributed.vcpu->index) : nullptr;
  }
  // A function of its own, so that the frequent path needs no registers saved.
  template <void (PvEvents::*kTake)(const AttributedRecord&)>
  [[gnu::noinline]] void CreateCounts(const AttributedRecord& attributed) {
    if (attributed.vcpu == nullptr) {
      ++unattributed_;
      return;
    }
    vcpus_.At(attributed.vcpu->index, attributed.vcpu->ref);
    (this->*kTake)(attributed);
  }

  void OnHypercall(const AttributedRecord& attributed) {
    CountHypercall<&Counts::hypercalls>(attributed);
  }
  void OnSubcall(const AttributedRecord& attributed) {
    CountHypercall<&Counts::subcalls>(attributed);
  }
  template <HypercallCounts Counts::*kCounts>
  void CountHypercall(const AttributedRecord& attributed) {
    Counts* counts = CountsOf(attributed);
    if (counts == nullptr) [[unlikely]] {
      return CreateCounts<&PvEvents::CountHypercall<kCounts>>(attributed);
    }
    const trace::Payload& payload = attributed.record.payload;
    const uint32_t call = std::min(trace::HypercallOp(payload.Word(0)), kHypercalls);
    ++(counts->*kCounts)[call];
    CountArguments(payload, call, *counts);
  }
  void OnOldHypercall(const AttributedRecord& attributed) {
    Counts* counts = CountsOf(attributed);
    if (counts == nullptr) [[unlikely]] {
      return CreateCounts<&PvEvents::OnOldHypercall>(attributed);
    }
    const trace::Payload& payload = attributed.record.payload;
    ++counts->hypercalls[std::min(payload.Word(payload.count() - 1), kHypercalls)];
  }
  void OnTrap(const AttributedRecord& attributed) {
    Counts* counts = CountsOf(attributed);
    if (counts == nullptr) [[unlikely]] {
      return CreateCounts<&PvEvents::OnTrap>(attributed);
    }
    const trace::Record& record = attributed.record;
    const uint32_t vector =
        record.payload.Word(trace::Is64(record.id) ? 2 : 1) & (kTrapVectors - 1);
    ++counts->traps[vector];
    counts->eips.Add(Eip(record), kTrapTag | vector, Cycles{0}, eips_budget_);
  }

  static constexpr size_t Place(Event event) {
    return static_cast<size_t>(event) - static_cast<size_t>(kFirstOther);
  }
  static std::string VectorName(uint32_t vector) {
    return NameOr(trace::TrapName(vector), "vector", vector);
  }
  static std::string TagName(uint32_t tag) {
    if (tag >= kTrapTag) return "trap " + VectorName(tag - kTrapTag);
    return std::string(SummaryName(static_cast<Event>(tag)));
  }

  // Nearly all records of one hypercall have the same arguments, so their words are found once. An
  // argument that a record does not have is counted in a place of its own, which spares a branch.
  void CountArguments(const trace::Payload& payload, uint32_t call, Counts& counts) {
    const uint8_t place = kHypercallPlaces[call];
    if (place == kNoArguments) return;
    if (argument_words_[place].tags != payload.Word(0) >> 20) [[unlikely]] {
      return FindArguments(payload, place, counts);
    }
    CountFound(payload, place, counts);
  }
  [[gnu::noinline]] void FindArguments(const trace::Payload& payload, uint8_t place,
                                       Counts& counts) {
    const uint32_t tags = payload.Word(0) >> 20;
    argument_words_[place] = {tags, WordOf(tags, kArguments[place].operation),
                              WordOf(tags, kArguments[place].batch)};
    CountFound(payload, place, counts);
  }
  void CountFound(const trace::Payload& payload, uint8_t place, Counts& counts) const {
    const ArgumentWords& words = argument_words_[place];
    const bool has_operation = words.operation != 0 && words.operation < payload.count();
    const uint32_t operation = std::min(payload.Word(words.operation), kOperations);
    ++counts.operations[place][has_operation ? operation : kNoOperation];
    const bool has_batch = words.batch != 0;
    counts.batched[place] += has_batch ? payload.Word(words.batch) & ~kPreempted : 0;
  }
  // Adds the operations of the calls, and the sizes of their batches.
  static void AddArguments(const Counts& counts, uint32_t call, MetricRow& row) {
    const uint8_t place = kHypercallPlaces[call];
    if (place == kNoArguments) return;
    if (kArguments[place].batch >= 0)
      row.Add("operations", MetricUnit::kCount, counts.batched[place]);
    for (uint32_t operation = 0; operation <= kOperations; ++operation) {
      const uint64_t count = counts.operations[place][operation];
      if (count == 0) continue;
      std::string name =
          operation < kOperations
              ? NameOr(trace::HypercallArgumentName(call, 0, operation), "operation", operation)
              : "(other)";
      row.parts.push_back(
          MetricRow{std::move(name), {}, {}}.Add("count", MetricUnit::kCount, count));
    }
  }

  static void AddCount(MetricGroup& group, std::string name, uint64_t count) {
    if (count > 0)
      group.rows.push_back(
          MetricRow{std::move(name), {}, {}}.Add("count", MetricUnit::kCount, count));
  }
  static std::string NameOr(std::string_view name, std::string_view kind, uint32_t number) {
    return name.empty() ? fmt::format("{}_{}", kind, number) : std::string(name);
  }
  // Adds the calls. A call within a multicall is a call; their number is a figure of its own.
  static void DescribeCalls(const Counts& counts, MetricGroup& group) {
    for (uint32_t call = 0; call <= kHypercalls; ++call) {
      const uint64_t direct = counts.hypercalls[call];
      const uint64_t within = counts.subcalls[call];
      if (direct + within == 0) continue;
      MetricRow row{
          call < kHypercalls ? NameOr(trace::HypercallName(call), "hypercall", call) : "(other)",
          {},
          {}};
      row.Add("count", MetricUnit::kCount, direct + within);
      row.Add("in_multicall", MetricUnit::kCount, within);
      AddArguments(counts, call, row);
      group.rows.push_back(std::move(row));
    }
  }

  struct ArgumentWords {
    uint32_t tags = ~0U;
    uint8_t operation = 0;  // index of the payload's word; 0: none
    uint8_t batch = 0;
  };

  PerVcpu<Counts> vcpus_;
  std::array<ArgumentWords, kArguments.size()> argument_words_;  // by index in kArguments
  uint64_t unattributed_ = 0;
  EntryBudget eips_budget_{1 << 17, 256};
};

}  // namespace

std::unique_ptr<Analysis> MakePvEvents() { return std::make_unique<PvEvents>(); }

}  // namespace xenoscope::analysis
