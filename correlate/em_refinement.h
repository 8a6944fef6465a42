// Refines where samples were: what a function does under some exit reasons only tells where those
// samples of it were that can have been in many places (docs/method.md, sections 3.2 and 5.2).
//
// Expectation-maximisation over the samples that are held, with what was learnt from those before
// them. Samples then get weights whose sums are the estimate and whose spread is its variance: they
// sum to 1 for each sample, but one may be negative, or in a place where the sample cannot have
// been. Memory: the samples that are held, and a number for each function in each context.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
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

// What rows are told apart by, beside vCPU, mode, function and context: the weights of no row's
// samples then sum to less than nothing.
struct EmRefinementOptions {
  bool by_address = false;
  bool by_process = false;
  bool by_pcpu = false;
  bool by_placing = false;
  // The next observer wants every sample. Otherwise those of a bracket that nothing tells apart
  // come as one with a count.
  bool each_sample = false;
  size_t max_pending = size_t{1} << 18;  // samples, or such
};

class EmRefiner final : public PlacingObserver {
 public:
  // Hands everything on to `next`: samples in their order, with other weights, when enough of them
  // are held or at the end. Both outlive it.
  EmRefiner(const EmRefinementOptions& options, Resolver& resolver, PlacingObserver& next)
      : options_(options), resolver_(resolver), next_(next) {}

  void OnPlaced(const PlacedSample& placed) override;
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override {
    next_.OnUnplaced(sample, why);
  }
  void OnTraced(VcpuRef vcpu, Context context, Cycles cycles) override {
    next_.OnTraced(vcpu, context, cycles);
  }
  // Hands on what is still held.
  void Finish() { Flush(); }

 private:
  // What a function takes of a context of a domain's vCPUs, in samples.
  struct Share {
    uint32_t context = 0;  // of context_samples_
    double prior = 0;      // of the samples handed on
    double certain = 0;    // of those that are held and can have been nowhere else
    double current = 0;    // with those that are held, as the last step has them
  };
  // What the steps need of a sample's place, small: they go over all of them again and again.
  struct Link {
    double length = 0;   // the place's weight by length
    uint32_t share = 0;  // of shares_
    uint32_t part = 0;   // of its kind's parts
  };
  // Places that samples of one domain can have been in, with weights by length.
  struct PlaceList {
    uint64_t number = 0;  // PlacedSample::list
    uint32_t first = 0;   // of places_ and place_numbers_
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
    uint64_t count = 0;        // samples that are like it
    uint32_t kind = 0;         // of kinds_
    uint32_t first_place = 0;  // of places_
    uint32_t first_link = 0;   // of links_
    uint32_t places = 0;
  };
  // Held samples that can have been in several places: what the steps go over again and again.
  struct UncertainSample {
    double samples = 0;
    uint32_t first_link = 0;  // of links_
    uint32_t places = 0;
  };
  // What the samples of some rows have in common; fields that nothing is told apart by are 0.
  struct Kind {
    VcpuRef vcpu;
    FunctionId function;
    Mode mode = Mode::kUser;
    Address address = 0;
    AddressSpaceId process;
    Placement placing = Placement::kBracketed;
    auto operator<=>(const Kind&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Kind& kind) {
      return H::combine(std::move(h), kind.vcpu, kind.function.value, kind.mode, kind.address,
                        kind.process.value, kind.placing);
    }
  };
  // Where the held samples of one kind can have been, and what they tell of that.
  struct Parts {
    std::vector<uint32_t> numbers;  // of the places
    std::vector<Place> places;      // what their weights are does not matter
    std::vector<uint32_t> shares;   // of shares_, by part
    InfluenceWeights influence;
    uint64_t list = 0;  // PlacedSample::list of the last sample, held there
    size_t pending = 0;
  };

  uint32_t ContextNumber(DomainId domain, Context context);
  uint32_t ShareOf(uint32_t context, FunctionId function);
  // The list of the sample's places: the last of its mode, where that is the same.
  const PlaceList& PlaceListOf(const PlacedSample& placed);
  Kind KindOf(const PlacedSample& placed, FunctionId function) const;
  uint32_t KindNumber(const Kind& kind);
  // A number for places that no row tells apart.
  uint32_t PlaceNumber(const Place& place);
  // The part of the kind that its samples in the place are of.
  uint32_t PartOf(const Kind& kind, Parts& parts, uint32_t number, const Place& place);
  std::span<const Place> PlacesOf(const PendingSample& pending) const {
    return {places_.data() + pending.first_place, pending.places};
  }
  template <typename SampleT>  // PendingSample or UncertainSample
  std::span<const Link> LinksOf(const SampleT& sample) const {
    return {links_.data() + sample.first_link, sample.places};
  }
  // How much the place weighs for its sample by the shares as they are, unnormalised.
  double WeightOf(const Link& link) const { return link.length * context_share_[link.share]; }
  // Adds what the held samples are expected to be by the lengths alone: where the steps begin.
  void InitialiseByLengths();
  // Whether its place is known, and the part of its kind with it: there is nothing to weigh.
  bool IsCertain(const PendingSample& pending) const {
    return pending.places == 1 && kinds_[pending.kind].places.size() == 1;
  }
  void UpdateContextShares();
  // One step: expects where the held samples are by the shares as they are, and takes the shares
  // from that. Returns by how many samples the shares have moved.
  double EmStep();
  // By what weights the sample is in its places, by the shares as they are: into weights_, and by
  // part into lengths_ and expected_.
  void ComputePosterior(const PendingSample& pending);
  void GatherInfluence();
  // Into weighed_: its places, with weights that carry its influence on the estimate.
  void Weigh(const PendingSample& pending);
  void Flush();

  EmRefinementOptions options_;
  Resolver& resolver_;
  PlacingObserver& next_;
  absl::flat_hash_map<std::pair<DomainId, Context>, uint32_t> context_index_;
  std::vector<double> context_samples_;                  // sums of Share::current
  absl::flat_hash_map<uint64_t, uint32_t> share_index_;  // by context and function
  std::vector<Share> shares_;
  std::vector<double> context_share_;  // by share: Share::current of all samples of the context
  std::vector<double> next_counts_;    // by share: what the step at hand makes of Share::current
  Interner<Kind, 256> kind_numbers_;
  std::vector<Parts> kinds_;
  std::vector<PendingSample> pending_;
  uint64_t samples_ = 0;  // that are held
  std::vector<UncertainSample> open_;
  std::vector<Link> links_;
  std::vector<Place> places_;
  absl::flat_hash_map<std::tuple<Context, Context, uint32_t>, uint32_t> place_index_;
  std::vector<uint32_t> place_numbers_;          // of places_, each
  std::array<PlaceList, 3> last_place_lists_{};  // by mode
  // Of the sample at hand.
  std::vector<double> weights_;    // by link
  std::vector<double> lengths_;    // by part
  std::vector<double> expected_;   // likewise
  std::vector<double> influence_;  // likewise
  std::vector<Place> weighed_;
};

}  // namespace xenoscope::correlate
