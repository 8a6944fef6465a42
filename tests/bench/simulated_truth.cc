// How near estimates come to a truth that is known: simulated_truth TRACE [OPTION...];
// docs/accuracy.md
//
// Samples are drawn at random instants of the trace's own timeline, each in a function that is
// drawn by what the truth says of its context; then they are placed as if only their drain were
// known. With --even they come by an even counter, and the trace gets what their NMIs would have
// left in it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "correlate/context_switches.h"
#include "correlate/em_refinement.h"
#include "correlate/nmi_matching.h"
#include "correlate/placing/placer.h"
#include "correlate/profile.h"
#include "correlate/timeline.h"
#include "recording/plain_file.h"
#include "trace/probe.h"
#include "trace/record.h"
#include "trace/trace_file.h"
#include "trace/windows.h"

namespace xenoscope {
namespace {

using correlate::Context;
using correlate::ContextKind;
using correlate::Dimension;

struct Settings {
  std::string trace;
  size_t samples = 20'000;
  double bracket_us = 5000;
  int runs = 20;
  uint32_t domain = ~uint32_t{0};  // only this one
  size_t common = 60;              // functions that contexts share
  size_t own = 20;                 // functions of each context alone
  double transition = 0;           // cycles in Xen at the begin and end of each stay in a guest
  double phase = 0;   // seconds after which contexts exchange their own functions; 0: never
  bool even = false;  // samples come by an even counter, and the trace has their NMI exits
  uint64_t seed = 1;
};

// With --even, in cycles: what the handling of an NMI takes; Xen then works for so long before the
// record of the NMI's exit, from there to that of the entry, and after it.
constexpr Cycles kHandler = 1500;
constexpr Cycles kLeaving = 400;
constexpr Cycles kInExit = 600;
constexpr Cycles kEntering = 200;

// Whether the context's cycles are Xen's, for a vCPU of an HVM guest.
bool IsXen(const Context& context) {
  return context.kind == ContextKind::kExit || context.kind == ContextKind::kResume ||
         context.kind == ContextKind::kTransition || context.kind == ContextKind::kSwitch;
}

// Time of one vCPU in one context. Samples there are logged for the vCPU `current`.
struct Piece {
  TscRange range;
  VcpuRef vcpu;
  VcpuRef current;
  Context context;
};

// The pieces of all vCPUs.
class PieceCollector final : public correlate::TimelineObserver {
 public:
  bool WantsMarks() const override { return false; }
  void OnState(const correlate::VcpuTrack& vcpu, correlate::TimelineState before) override {
    switches_.OnState(vcpu, before);
  }
  void OnSegment(const correlate::Segment& segment) override {
    TscRange range = segment.range;
    TscRange& switched = switched_[segment.vcpu];
    if (range.begin == switched.begin) range.begin = std::min(range.end, switched.end);
    if (IsIdle(segment.vcpu) || range.Empty()) return;
    const Context context = ContextOf(segment.kind, segment.nested, segment.reason);
    all.push_back({range, segment.vcpu, segment.vcpu, context});
  }
  // Takes what the timeline has taken.
  void Take(const trace::Item& item, const correlate::Timeline& timeline) {
    if (item.kind != trace::ItemKind::kRecord) return;
    const auto& events = correlate::ContextSwitches::kEvents;
    const correlate::VcpuTrack* const current = timeline.Current(item.record.pcpu);
    if (current == nullptr || std::ranges::find(events, item.record.event) == events.end()) return;
    if (const auto found = switches_.Take(item.record, *current)) {
      switched_[found->to->ref] = found->range;
      all.push_back({found->range, found->to->ref, found->from->ref, {ContextKind::kSwitch}});
    }
  }
  std::vector<Piece> all;

 private:
  correlate::ContextSwitches switches_;
  std::map<VcpuRef, TscRange> switched_;
};

// Functions have the numbers of their addresses.
class FakeResolver final : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address address) override {
    const auto number = static_cast<uint32_t>(address);
    while (functions_.size() <= number) {
      functions_.push_back({"truth", fmt::format("f{}", functions_.size()), ""});
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

// What the functions of each context take of it.
class Truth {
 public:
  explicit Truth(const Settings& settings) : settings_(settings), random_(settings.seed) {}

  // Contexts have their functions in two phases. In the second one, each has the own functions of
  // another.
  const std::vector<double>& SharesOf(Context context, size_t phase) {
    const size_t number = contexts_.try_emplace(context, contexts_.size()).first->second;
    const auto [at, is_new] = shares_.try_emplace({context, phase});
    if (is_new) at->second = Make(context, number ^ phase);
    return at->second;
  }
  static constexpr size_t kFunctions = 2000;
  static constexpr size_t kFirstOwn = 200;  // those before it many contexts share

 private:
  // Half of a context's time is in functions of its own, half in such that many contexts share.
  std::vector<double> Make(Context context, size_t own) {
    std::vector<double> shares(kFunctions, 0);
    const size_t common = IsXen(context) ? 0 : 100;
    const auto add = [&](size_t first, size_t count, double all) {
      std::vector<double> weights;
      double sum = 0;
      for (size_t i = 0; i < count; ++i)
        sum += weights.emplace_back(1 / static_cast<double>(i + 1));
      std::shuffle(weights.begin(), weights.end(), random_);
      for (size_t i = 0; i < count; ++i) shares[first + i] += all * weights[i] / sum;
    };
    add(common, std::min<size_t>(settings_.common, 100), 0.5);
    add(kFirstOwn + settings_.own * own, settings_.own, 0.5);
    return shares;
  }

  const Settings& settings_;
  std::mt19937_64 random_;
  std::map<Context, size_t> contexts_;
  std::map<std::pair<Context, size_t>, std::vector<double>> shares_;
};

// A trace of one pCPU to which NMIs are added: each delays what comes after it.
class TraceWithNmis {
 public:
  explicit TraceWithNmis(const trace::TraceFile& file) : stream_(file.Stream()) {}

  // Adds the NMI at an instant of the old trace, not before that of the last one; `rip` is that of
  // a guest. Returns its instant in the new trace.
  Tsc Add(Tsc at, std::optional<Address> rip) {
    CopyBefore(at);
    const Tsc nmi = at + delay_;
    delay_ += kHandler;
    if (!rip) return nmi;
    Write(trace::IdOf(trace::Event::kHvmVmexit) | kAddressOf64Bits, nmi + kHandler + kLeaving,
          {correlate::kSvmExitNmi, static_cast<uint32_t>(*rip), 0});
    Write(trace::IdOf(trace::Event::kHvmVmentry), nmi + kHandler + kLeaving + kInExit, {});
    delay_ += kLeaving + kInExit + kEntering;
    return nmi;
  }
  // Returns the new trace, which this holds.
  absl::StatusOr<trace::TraceFile> Finish() {
    CopyBefore(trace::OrderedStream::kEnd);
    words_.at(2) = static_cast<uint32_t>((words_.size() - kHeaderWords) * sizeof(uint32_t));
    return trace::TraceFile::FromBytes(std::as_bytes(std::span(words_)), "with NMIs");
  }

 private:
  static constexpr uint32_t kAddressOf64Bits = 0x100;  // TRC_64_FLAG
  static constexpr size_t kHeaderWords = trace::kWindowHeaderBytes / sizeof(uint32_t);

  void CopyBefore(Tsc end) {
    if (item_ == nullptr) item_ = stream_.Next();
    for (; item_ != nullptr && item_->record.tsc < end; item_ = stream_.Next()) {
      if (item_->kind != trace::ItemKind::kRecord) continue;
      const trace::Record& record = item_->record;
      std::vector<uint32_t> payload;
      payload.reserve(record.payload.count());
      for (uint32_t i = 0; i < record.payload.count(); ++i)
        payload.push_back(record.payload.Word(i));
      Write(record.id, record.tsc + delay_, payload, record.has_tsc);
    }
  }
  void Write(uint32_t id, Tsc tsc, const std::vector<uint32_t>& payload, bool has_tsc = true) {
    words_.push_back(
        trace::FirstWord::Pack(id, static_cast<uint32_t>(payload.size()), has_tsc).value);
    if (has_tsc) {
      words_.push_back(static_cast<uint32_t>(tsc.value));
      words_.push_back(static_cast<uint32_t>(tsc.value >> 32));
    }
    words_.insert(words_.end(), payload.begin(), payload.end());
  }

  trace::OrderedStream stream_;
  const trace::Item* item_ = nullptr;  // the next one
  Cycles delay_ = 0;
  std::vector<uint32_t> words_{trace::kWindowHeaderWord, 0, 0};
};

// Samples of a timeline, with what nobody but us knows of them.
class SimulatedSamples final : public correlate::SampleSource {
 public:
  const recording::Sample* Next() override {
    return next_ == samples.size() ? nullptr : &samples[next_++];
  }
  std::vector<recording::Sample> samples;

 private:
  size_t next_ = 0;
};

using Joint = std::map<std::pair<Context, std::string>, double>;

double Distance(const Joint& truth, const Joint& estimate) {
  double sum = 0;
  for (const auto& [key, share] : truth) {
    const auto found = estimate.find(key);
    sum += std::abs(share - (found == estimate.end() ? 0 : found->second));
  }
  for (const auto& [key, share] : estimate) {
    if (!truth.contains(key)) sum += share;
  }
  return sum / 2;
}

Joint JointOf(const correlate::ProfileResult& result) {
  Joint joint;
  for (const correlate::ProfileRow& row : result.rows) joint[{row.exit, row.function}] += row.share;
  return joint;
}

struct Outcome {
  double lengths = 0;
  double refined = 0;
  double oracle = 0;
  double covered = 0;  // of functions' 95 % intervals
  double covered_by_lengths = 0;
  double joint_covered = 0;
  double joint_covered_by_lengths = 0;
  // Sums of squared errors of functions' shares: of one context's functions, and of those that many
  // contexts share.
  struct Squares {
    double report = 0;
    double counting = 0;  // by samples alone
  };
  std::array<Squares, 2> squares{};
};

class Simulation {
 public:
  Simulation(const trace::TraceFile& file, const Settings& settings)
      : file_(file), settings_(settings), truth_(settings_), random_(settings.seed) {
    dialect_ = trace::ProbeTrace(file).dialect;
    clock_ = trace::ProbeTrace(file).ClockOr();
    correlate::Timeline timeline(pieces_);
    trace::OrderedStream stream = file.Stream();
    while (const trace::Item* item = stream.Next()) {
      timeline.Take(*item);
      pieces_.Take(*item, timeline);
    }
    timeline.Finish();
    pcpus_ = file.index().pcpus.size();
    if (settings.even) {
      std::ranges::sort(pieces_.all, {}, [](const Piece& piece) { return piece.range.begin; });
    }
    all_pieces_ = pieces_.all;
    if (settings.domain != ~uint32_t{0}) KeepDomain();
    double all = 0;
    for (const Piece& piece : pieces_.all) {
      ends_.push_back(all += static_cast<double>(piece.range.Length()));
      begin_ = std::min(begin_, piece.range.begin);
    }
    std::map<std::pair<Context, size_t>, double> phase_share;
    for (const Piece& piece : pieces_.all) {
      const size_t phase = PhaseAt(piece.range.begin);
      const Context& context = piece.context;
      const double transition = TransitionOf(piece);
      const double rest = static_cast<double>(piece.range.Length()) - transition;
      const auto add = [&](const Context& of, double cycles) {
        if (cycles <= 0) return;
        phase_share[{of, phase}] += cycles / all;
        context_share_[of] += cycles / all;
      };
      add(context, rest);
      add(correlate::TransitionOf(context), transition);
    }
    for (const auto& [key, share] : phase_share) {
      const auto& [context, phase] = key;
      const std::vector<double>& of = truth_.SharesOf(context, phase);
      for (size_t f = 0; f < of.size(); ++f) {
        if (of[f] > 0) joint_[{context, fmt::format("f{}", f)}] += share * of[f];
        if (of[f] > 0) functions_[fmt::format("f{}", f)] += share * of[f];
      }
    }
  }

  size_t pcpus() const { return pcpus_; }
  size_t contexts() const { return context_share_.size(); }

  Outcome Run() {
    SimulatedSamples drawn;
    Joint oracle;
    TraceWithNmis nmis(file_);
    if (settings_.even) {
      DrawEven(drawn, oracle, nmis);
    } else {
      Draw(drawn, oracle);
    }
    const auto with_nmis = settings_.even ? nmis.Finish() : absl::StatusOr<trace::TraceFile>();
    trace_ = with_nmis.ok() ? &*with_nmis : &file_;
    Outcome outcome;
    outcome.oracle = Distance(joint_, oracle);
    for (const bool refine : {false, true}) {
      const auto result = Estimate(drawn, {Dimension::kExit, Dimension::kFunction}, refine);
      (refine ? outcome.refined : outcome.lengths) = Distance(joint_, JointOf(result));
      double covered = 0;
      double rows = 0;
      for (const correlate::ProfileRow& row : result.rows) {
        const auto share = joint_.find({row.exit, row.function});
        const double true_share = share == joint_.end() ? 0 : share->second;
        if (true_share * static_cast<double>(settings_.samples) < 20) continue;
        rows += 1;
        if (row.interval.low <= true_share && true_share <= row.interval.high) covered += 1;
      }
      (refine ? outcome.joint_covered : outcome.joint_covered_by_lengths) = covered / rows;
    }
    for (const bool refine : {false, true}) {
      const auto result = Estimate(drawn, {Dimension::kFunction}, refine);
      std::map<std::string, double> count;
      for (const recording::Sample& sample : drawn.samples) {
        count[fmt::format("f{}", sample.address)] += 1 / static_cast<double>(settings_.samples);
      }
      size_t covered = 0;
      size_t rows = 0;
      for (const correlate::ProfileRow& row : result.rows) {
        const double share = functions_.at(row.function);
        if (refine) {
          const bool shared = std::stoul(row.function.substr(1)) < Truth::kFirstOwn;
          Outcome::Squares& squares = outcome.squares.at(shared ? 1 : 0);
          squares.report += (row.share - share) * (row.share - share);
          squares.counting += (count[row.function] - share) * (count[row.function] - share);
        }
        if (share * static_cast<double>(settings_.samples) < 20) continue;  // seldom seen at all
        ++rows;
        covered += static_cast<size_t>(row.interval.low <= share && share <= row.interval.high);
      }
      const double part = static_cast<double>(covered) / static_cast<double>(rows);
      (refine ? outcome.covered : outcome.covered_by_lengths) = part;
    }
    return outcome;
  }

 private:
  // Leaves the pieces whose samples are logged for one domain.
  void KeepDomain() {
    std::erase_if(pieces_.all, [&](const Piece& piece) {
      return piece.current.domain.value != settings_.domain;
    });
  }

  // Returns in which of the two phases a piece is that begins then.
  size_t PhaseAt(Tsc begin) const {
    if (settings_.phase <= 0) return 0;
    const auto seconds = static_cast<double>(begin - begin_) / static_cast<double>(clock_.hz);
    return static_cast<size_t>(seconds / settings_.phase) % 2;
  }

  // Returns the cycles of the piece that are transitions, the same at its begin and its end.
  double TransitionOf(const Piece& piece) const {
    if (piece.context.kind != ContextKind::kGuest) return 0;
    return std::min(settings_.transition, static_cast<double>(piece.range.Length()));
  }

  Context ContextAt(const Piece& piece, double offset) const {
    const double edge = TransitionOf(piece) / 2;
    const double end = static_cast<double>(piece.range.Length()) - edge;
    return offset < edge || offset >= end ? correlate::TransitionOf(piece.context) : piece.context;
  }

  // A sample that was taken, and its function.
  struct DrawnSample {
    Tsc when;
    Context context;
    size_t function = 0;
    recording::Sample sample;
  };

  // Draws the sample at a place of the piece.
  DrawnSample DrawAt(const Piece& piece, double offset) {
    DrawnSample drawn;
    drawn.when = piece.range.begin + static_cast<Cycles>(offset);
    drawn.context = ContextAt(piece, offset);
    const std::vector<double>& shares = truth_.SharesOf(drawn.context, PhaseAt(piece.range.begin));
    drawn.function = std::discrete_distribution<size_t>(shares.begin(), shares.end())(random_);
    drawn.sample.vcpu = piece.current;
    drawn.sample.mode = IsXen(drawn.context) ? Mode::kXen : Mode::kUser;
    drawn.sample.address = drawn.function;
    return drawn;
  }

  void Draw(SimulatedSamples& drawn, Joint& oracle) {
    std::uniform_real_distribution<double> anywhere(0, ends_.back());
    std::vector<DrawnSample> all;
    all.reserve(settings_.samples);
    for (size_t i = 0; i < settings_.samples; ++i) {
      const double at = anywhere(random_);
      const auto index =
          static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
      const Piece& piece = pieces_.all[std::min(index, ends_.size() - 1)];
      const double offset = std::uniform_real_distribution<double>(
          0, static_cast<double>(piece.range.Length()))(random_);
      all.push_back(DrawAt(piece, offset));
    }
    Drain(all, drawn, oracle);
  }

  // The counter counts what runs, also of domains whose samples are left out.
  void DrawEven(SimulatedSamples& drawn, Joint& oracle, TraceWithNmis& nmis) {
    const double period = ends_.back() / static_cast<double>(settings_.samples);
    std::vector<DrawnSample> all;
    double left = std::uniform_real_distribution<double>(0, period)(random_);
    for (const Piece& piece : all_pieces_) {
      const auto length = static_cast<double>(piece.range.Length());
      double offset = left;
      while (offset < length) {
        DrawnSample sample = DrawAt(piece, offset);
        const bool in_guest = sample.context.kind == ContextKind::kGuest;
        sample.when =
            nmis.Add(sample.when, in_guest ? std::optional(sample.sample.address) : std::nullopt);
        const bool kept =
            settings_.domain == ~uint32_t{0} || piece.current.domain.value == settings_.domain;
        if (kept) all.push_back(sample);
        offset += period;
      }
      left = offset - length;
    }
    Drain(all, drawn, oracle);
  }

  // Gives the samples the brackets of drains, and counts them by what they were drawn from.
  void Drain(std::vector<DrawnSample>& all, SimulatedSamples& drawn, Joint& oracle) const {
    const auto bracket =
        static_cast<Cycles>(settings_.bracket_us * 1e-6 * static_cast<double>(clock_.hz));
    std::map<Context, double> seen;
    std::map<std::pair<Context, size_t>, double> count;
    for (DrawnSample& each : all) {
      const Cycles drain = (each.when - begin_) / bracket;
      each.sample.when = {begin_ + drain * bracket, begin_ + (drain + 1) * bracket};
      seen[each.context] += 1;
      count[{each.context, each.function}] += 1;
    }
    // Drain by drain, in each vCPU's buffer in the order of time.
    std::ranges::sort(all, {}, [](const DrawnSample& each) {
      return std::tuple(each.sample.when.end, each.sample.vcpu, each.when);
    });
    drawn.samples.reserve(all.size());
    for (const DrawnSample& each : all) drawn.samples.push_back(each.sample);
    for (const auto& [key, n] : count) {
      oracle[{key.first, fmt::format("f{}", key.second)}] =
          context_share_.at(key.first) * n / seen.at(key.first);
    }
  }

  // Plain weighting by lengths knows nothing of samples' order, which is that of a bracket's
  // samples: brackets of their own have none.
  static void ForgetOrder(SimulatedSamples& drawn) {
    for (size_t i = 1; i < drawn.samples.size(); i += 2) {
      drawn.samples[i].when.begin = drawn.samples[i].when.begin + 1;
    }
  }

  correlate::ProfileResult Estimate(SimulatedSamples source, std::vector<Dimension> by,
                                    bool refine) {
    if (!refine) ForgetOrder(source);
    FakeResolver numbers;
    correlate::Profile profile({std::move(by), true, 0}, numbers);
    correlate::EmRefiner refiner({}, numbers, profile);
    correlate::PlacingOptions options;
    options.sampled = {Tsc{0}, trace::OrderedStream::kEnd};
    options.longest_bracket =
        static_cast<Cycles>(settings_.bracket_us * 1e-6 * static_cast<double>(clock_.hz)) + 1;
    options.vendor = dialect_.vendor;
    correlate::Placer placer(options, source,
                             refine ? static_cast<correlate::PlacingObserver&>(refiner) : profile);
    trace::OrderedStream stream = trace_->Stream();
    while (const trace::Item* item = stream.Next()) placer.Take(*item);
    if (!placer.Finish().ok()) std::abort();
    if (refine) refiner.Finish();
    auto result = profile.Finish();
    if (!result.ok()) std::abort();
    return *std::move(result);
  }

  const trace::TraceFile& file_;
  const trace::TraceFile* trace_ = nullptr;  // what the samples are placed by
  size_t pcpus_ = 0;
  std::vector<Piece> all_pieces_;  // of all domains
  Settings settings_;
  Truth truth_;
  std::mt19937_64 random_;
  trace::Dialect dialect_;
  Clock clock_;
  PieceCollector pieces_;
  std::vector<double> ends_;
  Tsc begin_ = trace::OrderedStream::kEnd;
  std::map<Context, double> context_share_;
  Joint joint_;
  std::map<std::string, double> functions_;
};

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("How near estimates come to a known truth over a real trace's timeline");
  app.add_option("TRACE", settings.trace)->required();
  app.add_option("--samples", settings.samples)->capture_default_str();
  app.add_option("--bracket-us", settings.bracket_us)->capture_default_str();
  app.add_option("--runs", settings.runs)->capture_default_str();
  app.add_option("--domain", settings.domain);
  app.add_option("--common", settings.common)->capture_default_str();
  app.add_option("--own", settings.own)->capture_default_str();
  app.add_option("--transition", settings.transition,
                 "Cycles in Xen at the begin and end of each stay in a guest")
      ->capture_default_str();
  app.add_option("--phase", settings.phase,
                 "Seconds after which contexts exchange the functions of their own; 0: never")
      ->capture_default_str();
  app.add_flag("--even", settings.even,
               "Samples come by an even counter, and the trace has their NMI exits; one pCPU");
  app.add_option("--seed", settings.seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto plain_file = recording::PlainFile::Open(settings.trace);
  const auto file =
      plain_file.ok() ? trace::TraceFile::Open(plain_file->path()) : plain_file.status();
  if (!file.ok()) {
    fmt::print(stderr, "simulated_truth: {}\n", Message(file.status()));
    return 1;
  }
  Simulation simulation(*file, settings);
  if (settings.even && (simulation.pcpus() != 1 || settings.transition > 0)) {
    fmt::print(stderr, "simulated_truth: --even needs a trace of one pCPU, without --transition\n");
    return 1;
  }
  Outcome mean;
  for (int run = 0; run < settings.runs; ++run) {
    const Outcome one = simulation.Run();
    mean.lengths += one.lengths / settings.runs;
    mean.refined += one.refined / settings.runs;
    mean.oracle += one.oracle / settings.runs;
    mean.covered += one.covered / settings.runs;
    mean.covered_by_lengths += one.covered_by_lengths / settings.runs;
    mean.joint_covered += one.joint_covered / settings.runs;
    mean.joint_covered_by_lengths += one.joint_covered_by_lengths / settings.runs;
    for (size_t i = 0; i < mean.squares.size(); ++i) {
      mean.squares.at(i).report += one.squares.at(i).report;
      mean.squares.at(i).counting += one.squares.at(i).counting;
    }
  }
  fmt::print("{} samples, brackets of {} us, {} contexts, {} runs\n", settings.samples,
             settings.bracket_us, simulation.contexts(), settings.runs);
  fmt::print("joint distribution of function and context, distance to the truth:\n");
  fmt::print("  by lengths {:.4f}   as reported {:.4f}   with every instant known {:.4f}\n",
             mean.lengths, mean.refined, mean.oracle);
  fmt::print(
      "intervals of functions that cover the truth: by lengths {:.1f} %, as reported {:.1f} %\n",
      100 * mean.covered_by_lengths, 100 * mean.covered);
  fmt::print("of functions in their contexts: by lengths {:.1f} %, as reported {:.1f} %\n",
             100 * mean.joint_covered_by_lengths, 100 * mean.joint_covered);
  fmt::print(
      "mean squared error of functions, to that of counting samples: of one context {:.2f}, of "
      "many "
      "{:.2f}\n",
      mean.squares[0].report / mean.squares[0].counting,
      mean.squares[1].report / mean.squares[1].counting);
  return 0;
}

}  // namespace
}  // namespace xenoscope

int main(int argc, char** argv) {
  try {
    return xenoscope::Main(argc, argv);
  } catch (const std::exception& error) {  // the standard library's only: memory
    std::fputs(error.what(), stderr);
    return 1;
  }
}
