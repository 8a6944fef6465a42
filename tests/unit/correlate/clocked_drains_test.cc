// Samples of a simulated processor, whose counter overflows when it has counted a period, are
// placed by the sampling clock where the clock is even, and by their brackets elsewhere.
#include "correlate/placing/clocked_drains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "correlate/placing/placer.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;
using trace::kRunnableToRunning;
using trace::kRunningToRunnable;
using trace::kVmentry;
using trace::kVmexit64;
using trace::kVmexitCpuid;
using trace::kVmexitIoio;
using trace::Rec;
using trace::TraceBuilder;

constexpr double kPeriod = 100'000;
// In Xen: until the record of the exit, after that of the entry, and while an NMI is handled.
constexpr double kLeaving = 300;
constexpr double kEntering = 200;
constexpr double kHandler = 900;
// From an overflow to the begin of the next period.
constexpr double kLatencyInXen = 300;
constexpr double kLatencyInGuest = 450;
constexpr Cycles kDrains = 500'000;

struct Machine {
  std::string name;
  double jitter = 0;       // of a period, in cycles
  bool doubles = false;    // NMIs that hit Xen come twice
  size_t lost_every = 0;   // each so many samples one is lost
  size_t halts_every = 0;  // the pCPU halts after so many exits, and its counter with it
  size_t pcpus = 1;        // after a halt the vCPU runs on another one
  bool shared = false;     // another guest runs instead of a halt
};

// vCPUs of HVM guests, which leave for CPUID and for port I/O.
class Simulation final : public SampleSource {
 public:
  explicit Simulation(const Machine& machine) : machine_(machine) {
    left_.fill(kPeriod);
    Start();
    for (size_t i = 0; i < 30'000; ++i) {
      if (machine.halts_every > 0 && i % machine.halts_every == machine.halts_every - 1) Halt();
      Stay(std::uniform_real_distribution<double>(2000, 6000)(random_));
      Exit(std::bernoulli_distribution(0.5)(random_) ? kVmexitCpuid : kVmexitIoio, 2500);
    }
    Stop();
    std::ranges::stable_sort(
        samples, {}, [](const Sample& sample) { return std::pair(sample.when.end, sample.vcpu); });
  }

  const Sample* Next() override { return next_ == samples.size() ? nullptr : &samples[next_++]; }

  TraceBuilder trace;
  std::vector<Sample> samples;
  // By the address of a sample in Xen.
  std::vector<uint32_t> reasons;  // 0: in a transition
  std::vector<Tsc> instants;

 private:
  static constexpr uint32_t kNmi = kSvmExitNmi;
  static constexpr uint32_t kGuestRip = 0x2000;  // of other exits

  Tsc Now() const { return {static_cast<uint64_t>(now_)}; }
  void Write(uint32_t id, std::initializer_list<uint32_t> extra) {
    records_.push_back(Rec(id, Now().value, extra));
  }
  void Start() { Write(kRunnableToRunning, {trace::Vcpu(domain_, 0)}); }
  void Stop() {
    Write(kRunningToRunnable, {trace::Vcpu(domain_, 0)});
    trace.Window(pcpu_, records_);
    records_.clear();
  }
  void Halt() {
    Stop();
    if (machine_.shared) {
      domain_ = domain_ == 1 ? 2 : 1;
      return Start();
    }
    now_ += std::uniform_real_distribution<double>(10'000, 80'000)(random_);
    pcpu_ = pcpu_ + 1 < machine_.pcpus ? pcpu_ + 1 : 0;
    Start();
  }

  void Log(Mode mode, Address address) {
    ++logged_;
    if (machine_.lost_every > 0 && logged_ % machine_.lost_every == 0) return;
    Sample& sample = samples.emplace_back();
    sample.vcpu = {DomainId{domain_}, VcpuId{0}};
    sample.mode = mode;
    sample.address = address;
    const Cycles drain = Now().value / kDrains;
    sample.when = {Tsc{drain * kDrains}, Tsc{(drain + 1) * kDrains}};
  }
  // The next period begins.
  void Reset(double latency) {
    left_[pcpu_] =
        kPeriod + std::uniform_real_distribution<double>(-1, 1)(random_) * machine_.jitter;
    left_[pcpu_] += latency - kHandler;  // of which the handler takes some
  }

  // Runs until the counter overflows, or for so many cycles, and takes what it ran off `cycles`.
  // Returns whether the counter has overflowed.
  bool RunUntilOverflow(double& cycles) {
    double& left = left_[pcpu_];
    const double step = std::min(cycles, left);
    now_ += step;
    cycles -= step;
    left -= step;
    return left <= 0;
  }
  // Xen works for so long; samples are in an exit for `reason`, or in a transition.
  void Work(double cycles, uint32_t reason) {
    while (cycles > 0) {
      if (!RunUntilOverflow(cycles)) return;
      for (int times = machine_.doubles ? 2 : 1; times > 0; --times) {
        Log(Mode::kXen, reasons.size());
        reasons.push_back(reason);
        instants.push_back(Now());
      }
      now_ += kHandler;
      Reset(kLatencyInXen);
    }
  }
  // From the record of the entry to that of the exit.
  void Stay(double cycles) {
    Write(kVmentry, {});
    Work(kEntering, 0);
    while (cycles > 0) {
      if (!RunUntilOverflow(cycles)) return;
      const auto rip = std::uniform_int_distribution<uint32_t>(0x1000, 0x1040)(random_);
      Log(Mode::kUser, rip);
      now_ += kHandler;
      Reset(kLatencyInGuest);
      Work(kLeaving, 0);
      Write(kVmexit64, {kNmi, rip, 0});
      Work(500, kNmi);
      Write(kVmentry, {});
      Work(kEntering, 0);
    }
  }
  void Exit(uint32_t reason, double cycles) {
    Work(kLeaving, 0);
    Write(kVmexit64, {reason, kGuestRip, 0});
    Work(cycles, reason);
  }

  Machine machine_;
  std::mt19937_64 random_{1};
  double now_ = 1'000'000;
  uint32_t pcpu_ = 0;
  uint16_t domain_ = 1;
  std::array<double, 2> left_{};  // by pCPU: cycles until the counter overflows
  size_t logged_ = 0;
  size_t next_ = 0;
  std::vector<std::vector<uint32_t>> records_;
};

// Where the samples in Xen are.
class Places final : public PlacingObserver {
 public:
  explicit Places(const Simulation& simulation) : truth_(simulation) {}
  void OnPlaced(const PlacedSample& placed) override {
    if (placed.sample->mode != Mode::kXen) return;
    ++samples;
    if (placed.placement != Placement::kClocked) return;
    ++clocked;
    if (placed.when.Contains(truth_.instants[placed.address])) ++within;
    const uint32_t reason = truth_.reasons[placed.address];
    for (const Place& place : placed.places) {
      const bool is_transition = place.context.kind == ContextKind::kTransition;
      const bool agrees = reason == 0 ? is_transition : place.context.reason == reason;
      if (agrees && place.context.kind != ContextKind::kGuest) right += place.weight;
    }
  }
  void OnUnplaced(const Sample& /*sample*/, UnplacedReason /*why*/) override {}
  void OnTraced(VcpuRef /*vcpu*/, Context /*context*/, ContextTime /*time*/) override {}

  double samples = 0;
  double clocked = 0;
  double within = 0;  // of these, whose instant is in their bracket
  double right = 0;

 private:
  const Simulation& truth_;
};

Places Place(const Machine& machine) {
  Simulation simulation(machine);
  PlacingOptions options;
  options.sampled = {Tsc{0}, Tsc{uint64_t{1} << 62}};
  options.longest_bracket = kDrains;
  options.vendor = trace::Vendor::kSvm;
  Places places(simulation);
  Placer placer(options, simulation, places);
  trace::Stream(simulation.trace, placer);
  EXPECT_TRUE(placer.Finish().ok());
  return places;
}

TEST(ClockedDrains, PlaceSamplesOfAnEvenClock) {
  const std::vector<std::pair<Machine, double>> expected = {
      {{.name = "even"}, 0.7},
      {{.name = "a little jitter", .jitter = 60}, 0.7},
      {{.name = "each 20th sample is lost", .lost_every = 20}, 0.3},
      {{.name = "the pCPU halts", .halts_every = 101}, 0.3},
      {{.name = "two guests", .halts_every = 57, .shared = true}, 0.3},
      {{.name = "two pCPUs", .halts_every = 301, .pcpus = 2}, 0.3},
  };
  for (const auto& [machine, least] : expected) {
    const Places places = Place(machine);
    EXPECT_GT(places.clocked, least * places.samples) << machine.name << ", of " << places.samples;
    EXPECT_GT(places.within, 0.95 * places.clocked) << machine.name << ", of " << places.clocked;
    EXPECT_GT(places.right, 0.995 * places.clocked) << machine.name << ", of " << places.clocked;
  }
}

TEST(ClockedDrains, LeaveOthersToTheirBrackets) {
  const std::vector<Machine> machines = {
      {.name = "jitter", .jitter = 20'000},
      {.name = "NMIs come twice in Xen", .doubles = true},
      {.name = "the pCPU halts all the time", .halts_every = 3},
  };
  for (const Machine& machine : machines) {
    const Places places = Place(machine);
    EXPECT_GT(places.samples, 500) << machine.name;
    EXPECT_LT(places.clocked, 0.01 * places.samples) << machine.name;
  }
}

}  // namespace
}  // namespace xenoscope::correlate
