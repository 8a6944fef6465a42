// Changes of the domains' memory: grants that one domain mapped, unmapped and transferred for
// another; and changes of the physical map: entries set, memory given back, populate-on-demand.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/summary/registry.h"
#include "trace/names.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

constexpr std::array kGrantEvents = {Event::kMemPageGrantMap, Event::kMemPageGrantUnmap,
                                     Event::kMemPageGrantTransfer};
constexpr std::array<const char*, kGrantEvents.size()> kGrantKeys = {"maps", "unmaps", "transfers"};

struct MapEvent {
  Event event;
  std::string_view name;
  // Index of the domain's word in the payload; the order is in its high half, or in the next word.
  uint32_t domain_word;
};
constexpr std::array kMapEvents = {
    MapEvent{Event::kMemSetP2mEntry, "set p2m entry", 5},
    MapEvent{Event::kMemDecreaseReservation, "decrease reservation", 2},
    MapEvent{Event::kMemPodPopulate, "pod populate", 4},
    MapEvent{Event::kMemPodZeroReclaim, "pod zero reclaim", 4},
    MapEvent{Event::kMemPodSuperpageSplinter, "pod superpage splinter", 2},
};

constexpr uint32_t kMaxOrder = 63;
constexpr uint32_t kNoExit = ~0U;

constexpr GroupInfo kGrantsByGroup{"grants_by", "Grants, done by it", SectionLevel::kDomain};
constexpr GroupInfo kGrantsForGroup{"grants_for", "Grants, done for it", SectionLevel::kDomain};
constexpr GroupInfo kMemoryGroup{"memory", "Physical map", SectionLevel::kDomain};

class Memory final : public Mergeable<Memory> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    for (const Event event : kGrantEvents) subscriptions.Record(event);
    for (const MapEvent& event : kMapEvents) subscriptions.Record(event.event);
  }

  void OnRecord(const AttributedRecord& attributed) override {
    const trace::Record& record = attributed.record;
    const auto* grant = std::find(kGrantEvents.begin(), kGrantEvents.end(), record.event);
    if (grant != kGrantEvents.end()) {
      std::optional<DomainId> by;
      if (attributed.vcpu != nullptr) by = attributed.vcpu->ref.domain;
      const DomainId whose{static_cast<uint16_t>(record.payload.Word(0))};
      ++grants_[{by, whose}][static_cast<size_t>(grant - kGrantEvents.begin())];
      return;
    }
    const auto* event =
        std::find_if(kMapEvents.begin(), kMapEvents.end(),
                     [&](const MapEvent& known) { return known.event == record.event; });
    const uint32_t word = record.payload.Word(event->domain_word);
    const uint32_t next = record.payload.Word(event->domain_word + 1);
    // Before 4.18 domain and order share a word; since then each has a word, except in
    // set_p2m_entry. The version may be known only at the end.
    const bool shared = event->event == Event::kMemSetP2mEntry;
    const auto index = static_cast<size_t>(event - kMapEvents.begin());
    const DomainId domain{static_cast<uint16_t>(word)};
    const bool in_exit = attributed.vcpu != nullptr && attributed.vcpu->exit_open;
    const uint32_t context = in_exit ? attributed.vcpu->exit_reason : kNoExit;
    ++changes_[0][{domain, index, std::min(word >> 16, kMaxOrder), context}];
    ++changes_[1][{domain, index, std::min(shared ? word >> 16 : next, kMaxOrder), context}];
  }

  void Merge(Memory& earlier) {
    for (const auto& [who, counts] : earlier.grants_) AddCounts(counts, grants_[who]);
    for (size_t i = 0; i < std::size(changes_); ++i) {
      for (const auto& [change, count] : earlier.changes_[i]) changes_[i][change] += count;
    }
  }

  void Finish(Tsc /*end*/) override {
    for (const auto& [who, counts] : grants_) granted_for_[{who.second, who.first}] = counts;
  }

  void AddDomains(std::set<DomainId>& domains) const override {
    for (const auto& [who, counts] : grants_) {
      if (who.first) domains.insert(*who.first);
      domains.insert(who.second);
    }
    for (const auto& [what, count] : changes_[0]) domains.insert(std::get<0>(what));
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kGrantsByGroup, kGrantsForGroup, kMemoryGroup};
  }
  void DescribeDomain(DomainId domain, const TraceMetadata& metadata, Section& out) const override {
    MetricGroup& by = out.AddGroup(kGrantsByGroup);
    MetricGroup& whose = out.AddGroup(kGrantsForGroup);
    for (auto at = grants_.lower_bound({domain, DomainId{}});
         at != grants_.end() && at->first.first == domain; ++at) {
      by.rows.push_back(GrantRow("for " + ToString(at->first.second), at->second));
    }
    for (auto at = granted_for_.lower_bound({domain, std::nullopt});
         at != granted_for_.end() && at->first.first == domain; ++at) {
      const std::optional<DomainId>& doer = at->first.second;
      whose.rows.push_back(GrantRow(doer ? "by " + ToString(*doer) : "by (unknown)", at->second));
    }
    DescribeChanges(domain, metadata, out.AddGroup(kMemoryGroup));
  }

 private:
  using GrantCounts = std::array<uint64_t, kGrantEvents.size()>;
  // A domain, an index in kMapEvents, an order, and the reason of the exit in which it happened.
  using Change = std::tuple<DomainId, size_t, uint32_t, uint32_t>;

  static MetricRow GrantRow(std::string name, const GrantCounts& counts) {
    MetricRow row{std::move(name), {}, {}};
    for (size_t i = 0; i < counts.size(); ++i)
      row.Add(kGrantKeys[i], MetricUnit::kCount, counts[i]);
    return row;
  }

  static std::string ContextName(uint32_t context, const TraceMetadata& metadata) {
    if (context == kNoExit) return "in no exit";
    const std::string_view name = trace::ExitReasonName(metadata.dialect.vendor, context);
    return name.empty() ? fmt::format("in exit 0x{:x}", context) : fmt::format("in {}", name);
  }

  void DescribeChanges(DomainId domain, const TraceMetadata& metadata, MetricGroup& group) const {
    const bool apart = metadata.dialect.from_version >= trace::MakeVersion(4, 18);
    const auto& changes = changes_[apart ? 1 : 0];
    for (size_t event = 0; event < kMapEvents.size(); ++event) {
      std::map<uint32_t, uint64_t> orders;
      std::map<uint32_t, uint64_t> contexts;
      uint64_t total = 0;
      uint64_t pages = 0;
      for (auto at = changes.lower_bound({domain, event, 0, 0}); at != changes.end(); ++at) {
        const auto& [change, count] = *at;
        if (std::get<0>(change) != domain || std::get<1>(change) != event) break;
        const uint32_t order = std::get<2>(change);
        orders[order] += count;
        contexts[std::get<3>(change)] += count;
        total += count;
        pages += count << order;
      }
      if (total == 0) continue;
      MetricRow row{std::string(kMapEvents[event].name), {}, {}};
      row.Add("count", MetricUnit::kCount, total).Add("pages", MetricUnit::kCount, pages);
      for (const auto& [order, count] : orders) {
        row.parts.push_back(MetricRow{fmt::format("order {}", order), {}, {}}
                                .Add("count", MetricUnit::kCount, count)
                                .Add("pages", MetricUnit::kCount, count << order));
      }
      for (const auto& [context, count] : contexts) {
        row.parts.push_back(MetricRow{ContextName(context, metadata), {}, {}}.Add(
            "count", MetricUnit::kCount, count));
      }
      group.rows.push_back(std::move(row));
    }
  }

  // By mapping domain, by granting domain.
  std::map<std::pair<std::optional<DomainId>, DomainId>, GrantCounts> grants_;
  std::map<std::pair<DomainId, std::optional<DomainId>>, GrantCounts> granted_for_;  // at the end
  std::map<Change, uint64_t> changes_[2];  // as Xen before 4.18 writes them, and as later ones do
};

}  // namespace

std::unique_ptr<Analysis> MakeMemory() { return std::make_unique<Memory>(); }

}  // namespace xenoscope::analysis
