// A host whose samples are drawn from shares that are known: what it spends in each function, in
// each context of each vCPU.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "correlate/pipeline_observer.h"
#include "correlate/profile.h"
#include "profile/profile_results.h"
#include "store/gather.h"

namespace xenoscope::store {

// Functions have the numbers of their addresses; three of them have the name of another one.
class NumberedFunctions final : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address address) override {
    const auto number = static_cast<uint32_t>(address);
    while (functions_.size() <= number) {
      const size_t i = functions_.size();
      functions_.push_back({i % 2 == 0 ? "vmlinux" : "nf_tables", fmt::format("f{}", i % 9), ""});
    }
    return {number};
  }
  const Function& Describe(FunctionId id) const override { return functions_[id.value]; }
  std::vector<Frame> Inlined(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }

 private:
  std::vector<Function> functions_;
};

// Draws samples and time, and gives both to observers.
class SimulatedHost {
 public:
  static constexpr size_t kFunctions = 12;
  static constexpr size_t kContexts = 4;
  static constexpr Cycles kTimeslice = 1'000'000;

  explicit SimulatedHost(uint64_t seed) : random_(seed) {
    for (auto& vcpu : shares_) {
      for (auto& context : vcpu) {
        for (double& share : context) share = 0.2 + Uniform();
        context[random_() % kFunctions] += 3;
      }
    }
  }

  // Makes the vCPUs run for `timeslices` each. With `traced`, contexts are those of an HVM guest,
  // and samples in exits may be in either of two.
  void Run(correlate::PlacingObserver& observer, int timeslices, bool traced) {
    for (int i = 0; i < timeslices; ++i) {
      for (uint32_t vcpu = 0; vcpu < shares_.size(); ++vcpu) Timeslice(observer, vcpu, traced);
    }
  }

  // The part of a function, by its address, in the time of all vCPUs.
  double ShareOf(size_t function) const {
    double share = 0;
    for (const auto& vcpu : shares_) {
      for (size_t context = 0; context < kContexts; ++context) {
        double all = 0;
        for (const double each : vcpu[context]) all += each;
        share +=
            kParts[context] * vcpu[context][function] / all / static_cast<double>(shares_.size());
      }
    }
    return share;
  }

 private:
  using Shares = std::array<std::array<double, kFunctions>, kContexts>;
  static constexpr std::array<double, kContexts> kParts = {0.5, 0.2, 0.2, 0.1};

  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  static constexpr size_t kNestedGuest = kContexts - 1;
  static constexpr bool IsGuest(size_t context) { return context == 0 || context == kNestedGuest; }
  static correlate::Context ContextOf(size_t number) {
    using correlate::ContextKind;
    if (number == 0) return {ContextKind::kGuest};
    if (number == kNestedGuest) return {ContextKind::kGuest, true};
    return {ContextKind::kExit, false, static_cast<uint32_t>(100 + number)};
  }

  // Samples of one timeslice are mostly of one function of each context.
  void Timeslice(correlate::PlacingObserver& observer, uint32_t number, bool traced) {
    const VcpuRef vcpu{{static_cast<uint16_t>(number / 2)}, {number % 2}};
    if (traced) {
      for (size_t context = 0; context < kContexts; ++context) {
        observer.OnTraced(vcpu, ContextOf(context),
                          {static_cast<Cycles>(kParts.at(context) * kTimeslice),
                           IsGuest(context) ? 10U : 0U, 2000});
      }
    }
    ++cluster_;
    std::array<size_t, kContexts> likely{};
    for (size_t context = 0; context < kContexts; ++context)
      likely.at(context) = Draw(number, context);
    const int samples = std::poisson_distribution<int>(6)(random_);
    for (int i = 0; i < samples; ++i) {
      const size_t context =
          std::discrete_distribution<size_t>(kParts.begin(), kParts.end())(random_);
      const size_t function = Uniform() < 0.5 ? likely.at(context) : Draw(number, context);
      recording::Sample sample;
      sample.vcpu = vcpu;
      sample.address = function;
      sample.mode = IsGuest(context) ? Mode::kKernel : Mode::kXen;
      const std::array<correlate::Place, 1> untraced = {{{{}, {}, 1, 1}}};
      const std::array<correlate::Place, 1> place = {{{ContextOf(context), {}, 1, 1}}};
      correlate::PlacedSample placed;
      placed.sample = &sample;
      placed.vcpu = vcpu;
      placed.address = function;
      placed.cluster = cluster_;
      placed.places = traced ? std::span(place) : std::span(untraced);
      observer.OnPlaced(placed);
    }
  }

  size_t Draw(uint32_t vcpu, size_t context) {
    const auto& shares = shares_.at(vcpu).at(context);
    return std::discrete_distribution<size_t>(shares.begin(), shares.end())(random_);
  }

  std::mt19937_64 random_;
  std::array<Shares, 4> shares_{};
  uint64_t cluster_ = 0;
};

}  // namespace xenoscope::store
