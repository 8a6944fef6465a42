// Refines the weights of samples that can have been in several places: a function that certain
// samples show in few contexts was most likely in those contexts at other times too
// (docs/method.md, sections 3.2 and 5.2).
//
// The method is expectation-maximisation over the samples that are held, with what was learnt from
// earlier ones. Samples then get weights whose sums are the estimate and whose spread is its
// variance. The weights of each sample sum to 1, but one may be negative, or of a place where the
// sample cannot have been. Samples of several events are refined each with those of its own event:
// a function's part of a context is not the same in each. Memory: the samples that are held, and a
// number for each function in each context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/interner.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "correlate/context.h"
#include "correlate/influence_weights.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

// What distinguishes rows, beside vCPU, mode, function and context. Samples are refined together
// only if no row distinguishes them, so that no row's weights sum to less than 0.
struct EmRefinementOptions {
  bool by_address = false;
  bool by_process = false;
  bool by_pcpu = false;
  bool by_placing = false;
  bool by_subreason = false;  // else exits of one reason are one context, as for Profile
  // The next observer wants every sample. Otherwise samples of a bracket that nothing
  // distinguishes come as one with a count.
  bool each_sample = false;
  size_t max_pending = size_t{1} << 18;  // the number of samples that are held, such ones being one
};

class EmRefiner final : public PlacingObserver {
 public:
  // Gives everything to `next`: the samples of each vCPU in their order, with other weights, when
  // max_pending are held or at the end. `resolver` and `next` outlive the refiner.
  EmRefiner(const EmRefinementOptions& options, Resolver& resolver, PlacingObserver& next)
      : options_(options), resolver_(resolver), next_(next) {}

  void OnPlaced(const PlacedSample& placed) override;
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override {
    next_.OnUnplaced(sample, why);
  }
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override {
    next_.OnTraced(vcpu, context, time);
  }
  // Gives the samples that are still held to the next observer.
  void Finish() { Flush(); }

 private:
  // A function's part of a context of a domain's vCPUs, in samples.
  struct Share {
    uint32_t context = 0;  // index into context_samples_
    double prior = 0;      // from the samples that were given to the next observer
    double certain = 0;    // from held samples that can have been nowhere else
    double current = 0;    // from all samples, as the last step weighs those that are held
  };
  // What the steps need of a sample's place. Small, as they go over all of them again and again.
  struct Link {
    double length = 0;   // the place's weight by length
    uint32_t share = 0;  // index into shares_
    uint32_t part = 0;   // index into the parts of the sample's kind
  };
  // Places that samples of one domain can have been in, with weights by length.
  struct PlaceList {
    uint64_t number = 0;  // PlacedSample::list
    uint32_t first = 0;   // index into places_ and place_numbers_
    uint32_t size = 0;
  };
  struct PendingSample {
    recording::Sample sample;
    VcpuRef vcpu;
    Address address = 0;
    Placement placement = Placement::kBracketed;
    uint64_t cluster = 0;
    TscRange when;
    FunctionId function;
    uint64_t count = 0;        // the samples that this one stands for
    uint32_t kind = 0;         // index into kinds_
    uint32_t first_place = 0;  // index into places_
    uint32_t first_link = 0;   // index into links_
    uint32_t places = 0;       // the number of its places and links
  };
  // A held sample that can have been in several places, as the steps need it.
  struct UncertainSample {
    double samples = 0;
    uint32_t first_link = 0;  // index into links_
    uint32_t places = 0;
  };
  // What samples that are refined together have in common. Fields that tell no rows apart are 0.
  struct Kind {
    VcpuRef vcpu;
    FunctionId function;
    uint16_t event = 0;
    Mode mode = Mode::kUser;
    Address address = 0;
    AddressSpaceId process;
    Placement placing = Placement::kBracketed;
    auto operator<=>(const Kind&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Kind& kind) {
      return H::combine(std::move(h), kind.vcpu, kind.function.value, kind.event, kind.mode,
                        kind.address, kind.process.value, kind.placing);
    }
  };
  // The places where the held samples of one kind can have been, and what the samples say of them.
  struct Parts {
    std::vector<uint32_t> numbers;  // by part: the number of the place
    std::vector<Place> places;      // by part; their weights mean nothing
    std::vector<uint32_t> shares;   // by part: the index into shares_
    InfluenceWeights influence;
    uint64_t list = 0;   // PlacedSample::list of the last sample
    size_t pending = 0;  // index of that sample into pending_
  };

  // Returns what is told apart of the context.
  [[nodiscard]] Context Distinguished(const Context& context) const {
    return options_.by_subreason ? context : WithoutSubreason(context);
  }
  uint32_t ContextNumber(DomainId domain, uint16_t event, Context context);
  uint32_t ShareOf(uint32_t context, FunctionId function);
  // Returns the list of the sample's places: the last one of its mode, if that is the same.
  const PlaceList& PlaceListOf(const PlacedSample& placed);
  [[nodiscard]] Kind KindOf(const PlacedSample& placed, FunctionId function) const;
  uint32_t KindNumber(const Kind& kind);
  // Returns the number that places have which no row distinguishes.
  uint32_t PlaceNumber(const Place& place);
  // Returns the part of the kind to which its samples in the place belong.
  uint32_t PartOf(const Kind& kind, Parts& parts, uint32_t number, const Place& place);
  [[nodiscard]] std::span<const Place> PlacesOf(const PendingSample& pending) const {
    return {places_.data() + pending.first_place, pending.places};
  }
  template <typename SampleT>  // PendingSample or UncertainSample
  [[nodiscard]] std::span<const Link> LinksOf(const SampleT& sample) const {
    return {links_.data() + sample.first_link, sample.places};
  }
  // Returns the place's weight for its sample by the current shares, not normalised.
  [[nodiscard]] double WeightOf(const Link& link) const {
    return link.length * context_share_[link.share];
  }
  // Sets the order in which held samples are gone through: one vCPU after the other, so that what
  // is known of it stays in the caches; if every sample is wanted, as they came.
  void OrderByVcpu();
  // Adds the held samples to the shares by their lengths alone, from which the steps begin.
  void InitialiseByLengths();
  // Whether the sample's place and part are known, so that there is nothing to weigh.
  [[nodiscard]] bool IsCertain(const PendingSample& pending) const {
    return pending.places == 1 && kinds_[pending.kind].places.size() == 1;
  }
  void UpdateContextShares();
  // Does one step: computes the expected places of the held samples from the shares, and the shares
  // from these. Returns how many samples have moved between shares.
  double EmStep();
  // Computes the weights of the sample's places by the current shares: by link into weights_, and
  // by part into lengths_ and expected_.
  void ComputePosterior(const PendingSample& pending);
  void GatherInfluence();
  // Puts the sample's places into weighed_, with weights that carry its influence on the estimate.
  void Weigh(const PendingSample& pending);
  void Flush();

  EmRefinementOptions options_;
  Resolver& resolver_;
  PlacingObserver& next_;
  absl::flat_hash_map<std::tuple<DomainId, uint16_t, Context>, uint32_t> context_index_;
  std::vector<double> context_samples_;                  // sums of Share::current
  absl::flat_hash_map<uint64_t, uint32_t> share_index_;  // by context and function
  std::vector<Share> shares_;
  std::vector<double> context_share_;  // by share: its part of the context's samples
  std::vector<double> next_counts_;    // by share: Share::current after the step at hand
  Interner<Kind, 256> kind_numbers_;
  std::vector<Parts> kinds_;
  std::vector<PendingSample> pending_;
  std::vector<uint32_t> order_;  // of pending_
  uint64_t samples_ = 0;         // the samples that are held
  std::vector<UncertainSample> open_;
  std::vector<Link> links_;
  std::vector<Place> places_;
  absl::flat_hash_map<std::tuple<Context, uint32_t, std::optional<VcpuRef>>, uint32_t> place_index_;
  std::vector<uint32_t> place_numbers_;          // by place: PlaceNumber
  std::array<PlaceList, 3> last_place_lists_{};  // by mode
  // The sample at hand.
  std::vector<double> weights_;    // by link
  std::vector<double> lengths_;    // by part
  std::vector<double> expected_;   // by part
  std::vector<double> influence_;  // by part
  std::vector<Place> weighed_;
};

}  // namespace xenoscope::correlate
