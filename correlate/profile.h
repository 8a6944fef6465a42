// Adds placed samples up: rows by any choice of dimensions, each with its samples, its share of all
// time, its cycles and its interval (docs/method.md, sections 4 and 5).
//
// Memory: rows and strata, and the samples of four running intervals of each vCPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/interner.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "base/string_interner.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/event_sums.h"
#include "correlate/placing/placed_sample.h"
#include "correlate/profile_result.h"
#include "correlate/profile_sums.h"
#include "correlate/row_key.h"
#include "correlate/run_queues.h"
#include "correlate/stacks.h"
#include "correlate/stratum_unions.h"
#include "correlate/thread_source.h"

namespace xenoscope::correlate {

// Which rows subtotals are of.
struct RowChoice {
  // Returns whether the row, which has the fields of `by` alone, is chosen. Called once for each
  // row, while samples are placed. Empty: all rows are chosen.
  std::function<bool(const ProfileRow&)> is_chosen{};
  std::vector<Dimension> by{};  // columns that rows are by, too
  // Takes what Context::waiting stands for. Only where `by` has that column: called before rows are
  // asked for.
  std::function<void(const std::vector<WaitingSet>&)> set_waiting{};
};

struct ProfileOptions {
  std::vector<Dimension> by;
  bool is_time = true;  // the event counts time: samples stand for cycles
  // The cycles that a sample stands for where no trace says it; 0: not known.
  double period = 0;
  bool parts = false;  // rows say which strata they are of
  // The reason of the VM exits that the NMIs of samples cause, if there is a trace. Xen cannot be
  // sampled while it handles them.
  std::optional<uint32_t> nmi_exit_reason{};
  // Asked only where rows are by line, once for each address.
  std::function<std::string(const PlacedSample&)> line_of{};
  // Returns the domain on whose behalf a process works. Asked only where rows are by that.
  std::function<std::optional<DomainId>(AddressSpaceId)> behalf_of{};
  // Returns the memory of a domain's process by its pid. Asked only for the processes of `threads`
  // where rows are by behalf.
  std::function<AddressSpaceId(DomainId, uint32_t pid, Tsc)> space_of{};
  // Says what contexts' threads stand for; null: nothing is known of threads. Outlives the profile.
  const ThreadSource* threads = nullptr;
  InlinedAt inlined_at{};       // StackOptions
  bool fold_recursion = false;  // StackOptions
  // Rows have totals: of the samples in whose stacks the row's functions, images and modes are,
  // each sample once. The columns are not by stack or address. The profile is of one event.
  bool totals = false;
  // The result has subtotals. The first column is the domain.
  bool subtotals = false;
  RowChoice choice{};  // of subtotals
  // The trace's totals apply, if the event counts time; false: all samples are one stratum.
  bool stratified = true;
  // The events of the profile, by their number in samples: 0 is the event whose shares are
  // estimated, the others are only counted beside it. Empty: all samples are of the event 0.
  std::vector<uint8_t> event_numbers{};
  std::vector<EventRatio> ratios{};  // ratios of the events that rows have
  // Whether the samples of each event are all that its counters counted.
  bool complete = false;
};

class ProfileEstimator;

class Profile : public PlacingObserver {
 public:
  // `resolver` outlives the profile; it is asked only for images and functions.
  Profile(ProfileOptions options, Resolver& resolver);

  void OnPlaced(const PlacedSample& sample) override;
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override;
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override;

  // Called once, after the last sample, either of them. Internal: the rows do not sum to what was
  // added.
  [[nodiscard]] absl::StatusOr<ProfileResult> Finish();
  // Returns what the result is estimated from, without events beside the profile's own.
  [[nodiscard]] ProfileSums TakeSums();

 private:
  static constexpr uint32_t kUnknown = ~uint32_t{0};
  static constexpr uint32_t kNotChosen = kUnknown - 1;  // instead of a row or part of a level

  // A place of samples of a cluster that is not complete yet.
  struct PlaceWeight {
    uint32_t part = 0;    // index into ProfileSums::rows.parts
    bool in_xen = false;  // the sample was taken in Xen
    double weight = 0;
    double length = 0;  // Place::length
  };
  struct EventWeight {
    uint32_t row = 0;
    uint32_t domain = 0;  // the number of the domain's row
    uint32_t event = 0;   // the event's number in the profile
    double weight = 0;
  };
  // A row of the totals of a level: 0 is ProfileSums::totals, 1 that of the first of `levels_`.
  struct TotalRow {
    uint32_t level = 0;
    uint32_t row = 0;
    auto operator<=>(const TotalRow&) const = default;
  };
  // What a sample adds to the total of a row.
  struct TotalWeight {
    uint32_t level = 0;  // as TotalRow::level
    uint32_t part = 0;   // index into the parts of these totals
    double weight = 0;
  };
  // What a place in another domain than the sample's vCPU adds to a stratum of all domains.
  struct MovedWeight {
    uint32_t stratum = 0;
    uint32_t domain = 0;  // row of ProfileSums::domains
    double weight = 0;
  };
  struct Cluster {
    uint64_t number = 0;
    std::vector<PlaceWeight> weights;
    std::vector<MovedWeight> moved;
    std::vector<TotalWeight> total_weights;  // only with totals
    std::vector<EventWeight> event_weights;  // only of several events: of all of them
  };
  // The clusters of a vCPU that are not complete: samples of different modes come nearly in order.
  struct OpenClusters {
    uint32_t domain = 0;  // the number of the domain's row
    std::array<Cluster, 4> open;
  };
  struct Names {
    uint32_t image = 0;
    uint32_t function = 0;
  };
  // Rows by some columns that rows by more of them are parts of.
  struct LevelRows {
    LevelRows(std::span<const Dimension> columns, uint32_t range)
        : sums(columns, FirstUnion(range)) {}

    RowSums sums;
    std::vector<uint32_t> row_of;   // by row of more columns: its row here; kNotChosen: none
    std::vector<uint32_t> closing;  // of the cluster that is being closed; empty between clusters
  };
  // The rows by the first columns alone, those of the choice. Indices are of Profile::sums_.
  struct Level {
    Level(std::span<const Dimension> columns, size_t number_of_events)
        : by(columns.begin(), columns.end()),
          rows(columns, static_cast<uint32_t>(2 * columns.size())),
          totals(columns, static_cast<uint32_t>(2 * columns.size() + 1)),
          events(number_of_events) {}

    std::vector<Dimension> by;
    LevelRows rows;
    LevelRows totals;  // only where functions of a stack can be of different rows
    bool has_totals = false;
    EventSums events;
    std::vector<uint32_t> part_of;  // by part of a row: its part in `rows`; kUnknown: not known yet
  };
  // A function of a stack, as rows know it.
  struct Member {
    Mode mode = Mode::kUser;
    Names names;
  };

  [[nodiscard]] bool IsStratified() const { return options_.is_time && options_.stratified; }
  // Whether events are counted beside the profile's own.
  [[nodiscard]] bool HasSeveralEvents() const { return !options_.event_numbers.empty(); }
  // Returns the event's number in the profile.
  [[nodiscard]] uint32_t EventOf(const recording::Sample& sample) const {
    return HasSeveralEvents() ? options_.event_numbers[sample.event] : 0;
  }
  // Returns the number of the stratum, which may be a new one.
  uint32_t StratumOf(VcpuRef vcpu, Context context);
  // Whether Xen's and the guest's part are compared in samples of the context.
  [[nodiscard]] bool HasBothModes(const Context& context) const;
  Names NamesOf(const PlacedSample& placed);
  Names NamesOf(FunctionId function);
  uint32_t LineOf(const PlacedSample& placed);
  // Returns the key of the sample's rows, without what depends on its place.
  RowKey KeyOf(const PlacedSample& placed);
  [[nodiscard]] bool Has(Dimension dimension) const { return sums_.rows.layout.Has(dimension); }
  // Returns the functions of the sample's stack.
  const std::vector<Member>& MembersOf(const PlacedSample& placed);
  // Sets what depends on the sample's place, which is time of `vcpu`.
  void PutPlace(const PlacedSample& placed, VcpuRef vcpu, const Place& place,
                const KeyLayout& layout, RowKey& key);
  // What a context's thread stands for.
  struct KnownThread {
    ThreadIdentity identity;
    uint64_t behalf = 0;  // as in keys of rows
  };
  // Returns what the thread stands for. `domain` is its domain, `when` an instant at which it ran.
  const KnownThread& ThreadOf(const Context& context, DomainId domain, Tsc when);
  // Returns the value in keys for the domain on whose behalf the process works.
  [[nodiscard]] uint64_t BehalfKey(AddressSpaceId space) const;
  // Adds the sample to the totals of the rows that its stack's functions are of. `key` is the
  // sample's own.
  void AddToTotals(const PlacedSample& placed, const RowKey& key, Cluster& cluster);
  // Returns the vCPU's cluster with the number. Where it is new, the oldest is closed.
  Cluster& ClusterOf(VcpuRef vcpu, uint64_t number);
  // Returns the number of the row's part in the stratum, for its union with others of the vCPU.
  uint32_t PartOf(RowSums& rows, uint32_t row, VcpuRef vcpu, uint32_t stratum);
  // Adds the cluster to the sums of its rows, strata and domain, and empties it.
  void Close(VcpuRef vcpu, uint32_t domain, Cluster& cluster);
  // Adds the cluster to the sums of events, and takes that from it.
  void AddToEvents(Cluster& cluster);
  // Adds up what the cluster has in each part and stratum, and lists its parts. Returns its
  // samples in traced strata.
  double SumCluster(const Cluster& cluster);
  // Adds the weight to the part of the cluster that is being closed, and lists the part if it is
  // the first one.
  void AddToPart(RowSums& rows, uint32_t number, double weight, std::vector<uint32_t>& parts) const;
  // Adds up what the cluster has in the totals of rows and levels, and lists their parts.
  void SumTotals(const Cluster& cluster);
  // Lists in total_rows_ the rows of all totals that the stack's functions are of, each once. `key`
  // has what depends on the sample's place.
  void ListTotalRows(const PlacedSample& placed, RowKey& key);
  // Adds the cluster to the parts.
  void AddToParts(RowSums& rows, const std::vector<uint32_t>& parts) const;
  // Adds the samples that the parts have in the cluster to their unions.
  void AddUnionAmounts(const RowSums& rows, const std::vector<uint32_t>& parts);
  // Adds the cluster to the samples in which Xen's and the guest's part of a vCPU are compared.
  void AddToModes(VcpuRef vcpu, const Cluster& cluster);
  // Adds the cluster's strata and rows to the unions of strata.
  void AddToUnions(VcpuRef vcpu);
  // Adds what the cluster has in each stratum to the stratum and to its domain's row: `domain`, but
  // for time of another domain's vCPU.
  void AddToStrata(uint32_t domain, const Cluster& cluster);
  // Adds what the cluster has of other domains in the stratum to their rows. Returns how many
  // samples these are.
  double AddMoved(const Cluster& cluster, uint32_t stratum);
  // Makes the levels of ProfileOptions::subtotals.
  void MakeLevels();
  // Returns whether the row with the key is one of the choice.
  [[nodiscard]] bool IsChosen(const KeyLayout& layout, const RowKey& key) const;
  // Returns the row of the level that the row of `from` is of, which may be a new one; kNotChosen
  // if it is not chosen. O(1) amortised.
  uint32_t LevelRowOf(LevelRows& level, const RowSums& from, uint32_t row);
  // Returns the part of the level that the part of a row is of, which may be a new one; kNotChosen
  // if its row is not chosen. O(1) amortised.
  uint32_t LevelPartOf(Level& level, uint32_t part);
  // Adds up what the cluster that is being closed has in the levels, and lists their parts. O(its
  // parts * levels).
  void SumLevels();
  // Returns whether all rows of a level are unions of whole strata.
  [[nodiscard]] bool IsExact(const Level& level) const;
  // Returns the rows of the level, by number.
  std::vector<ProfileRow> RowsOf(const ProfileEstimator& estimator, Level& level);
  // Sets the subtotals of the result, and which row is part of which.
  void SetSubtotals(const ProfileEstimator& estimator, ProfileResult& result);
  // Makes a row for each total, also where no sample is in the functions themselves.
  static void AddRowsOfTotals(const RowSums& totals, RowSums& rows);
  // Sets the totals of the rows, which are those of `sums`.
  static void SetTotals(const ProfileEstimator& estimator, const RowSums& totals, RowSums& sums,
                        std::vector<ProfileRow>& rows);
  // Sets the row's fields of the key's dimensions.
  void SetDimensions(const KeyLayout& layout, const RowKey& key, ProfileRow& out) const;
  // Sets the row's thread, process and container.
  void SetThread(const KeyLayout& layout, const RowKey& key, ProfileRow& out) const;
  // Sets all fields of the rows, by number, that are not estimated from sums of strata.
  void Describe(const RowSums& rows, const EventSums& events, std::vector<ProfileRow>& out) const;
  // Returns the ratios in the row; in all rows together if there is no row.
  [[nodiscard]] std::vector<RatioEstimate> RatiosOf(const EventSums& events,
                                                    std::optional<uint32_t> row) const;

  ProfileOptions options_;
  Resolver& resolver_;
  bool by_place_ = false;    // a sample can be of several rows
  bool by_thread_ = false;   // strata are of threads
  bool has_unions_ = false;  // rows can be of several strata of a vCPU
  ProfileSums sums_;
  EventSums row_events_;
  EventSums domain_events_;
  std::vector<Level> levels_;
  KeyLayout choice_layout_;  // of ProfileOptions::choice
  Interner<std::pair<VcpuRef, Context>, 256> stratum_numbers_;
  absl::flat_hash_map<VcpuRef, OpenClusters> clusters_;
  uint64_t closed_ = 0;  // clusters that were closed
  // The cluster that is being closed.
  std::vector<uint32_t> parts_;        // indices into rows.parts; empty between clusters
  std::vector<uint32_t> total_parts_;  // indices into totals.parts; the same
  std::vector<TotalRow> total_rows_;   // of the sample at hand
  std::vector<uint32_t> moved_parts_;  // indices into domains.parts; empty between strata
  std::vector<StratumUnions::Amount> strata_amounts_;
  std::vector<StratumUnions::Amount> union_amounts_;
  std::vector<double> union_scratch_;  // by union; all 0 between clusters
  // Names.
  Stacks stacks_;
  StringInterner names_;
  absl::flat_hash_map<uint32_t, Names> names_of_function_;
  std::vector<std::vector<Member>> members_;  // by number of the stack
  absl::flat_hash_map<CodeLocation, uint32_t> line_of_code_;
  std::vector<std::optional<KnownThread>> thread_of_;  // by Context::thread
  absl::flat_hash_map<std::string, double> unresolved_;
};

}  // namespace xenoscope::correlate
