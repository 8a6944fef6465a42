#include "cli/record_continuous.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/own_command.h"
#include "cli/slice_pusher.h"
#include "cli/time_of_day.h"
#include "sampler/budget.h"
#include "sampler/signals.h"
#include "sampler/xen/host.h"
#include "store/store.h"

namespace xenoscope::cli {
namespace {

using std::chrono::steady_clock;

constexpr double kMinSlice = 1;
constexpr double kMaxSlice = 86'400;
constexpr char kContinuousGroup[] = "Options of continuous recording";
constexpr int64_t kJoinAfterNs = int64_t{24} * 3600 * 1'000'000'000;
constexpr char kNever[] = "never";

// Parses "60", a number of slices, or "5GB".
std::optional<recording::SliceRing::Limits> ParseKeep(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  constexpr uint64_t kMaxNumber = 1'000'000;
  if (error != std::errc() || number == 0 || number > kMaxNumber) return std::nullopt;
  if (unit.empty()) return recording::SliceRing::Limits{.slices = number};
  constexpr uint64_t kMega = 1'000'000;
  if (unit == "MB") return recording::SliceRing::Limits{.bytes = number * kMega};
  if (unit == "GB") return recording::SliceRing::Limits{.bytes = number * kMega * 1000};
  return std::nullopt;
}

// The recorder's slices, one after the other.
class ContinuousRecorder {
 public:
  ContinuousRecorder(sampler::RecordRequest request, const recording::SliceRing& ring,
                     const ContinuousOptions& options)
      : request_(std::move(request)), ring_(ring), trace_steps_(sampler::TraceStepsOf(request_)) {
    if (!options.push.empty()) pusher_.emplace(ring, options.push, options.JoinAfterNs());
    if (!options.budget.empty()) limits_ = sampler::ParseBudget(options.budget);
  }

  absl::Status Run() {
    while (!ended_ && !signals_.WaitUntil(steady_clock::now())) {
      absl::Status status = RecordSlice();
      if (status.ok()) continue;
      if (absl::IsCancelled(status)) break;  // by a signal, before sampling began
      if (slices_ == 0) return status;
      fmt::print(stderr, "xenoscope: {}\n", Message(status));
      if (signals_.WaitUntil(steady_clock::now() + *request_.duration)) break;
    }
    if (pusher_) pusher_->Flush();
    return absl::OkStatus();
  }

 private:
  absl::Status RecordSlice() {
    const std::string name = recording::SliceRing::NameAt(sampler::ReadWallClock().utc_ns);
    sampler::RecordRequest request =
        budget_ ? sampler::Planned(request_, trace_steps_, events_, budget_->plan()) : request_;
    request.output = ring_.PathOf(name);
    const auto recorded = sampler::Record(request, [](const sampler::Progress&) {});
    XENOSCOPE_ASSIGN_OR_RETURN(const bool removed, ring_.RemoveRemains(name));
    if (!recorded.ok()) {
      MakeRoom(recorded.status());
      return recorded.status();
    }
    ended_ = recorded->info.stopped_because.starts_with("SIG");
    if (removed) return recorded->status;
    ++slices_;
    ring_.ShareSymbols(name);
    XENOSCOPE_ASSIGN_OR_RETURN(const size_t dropped, ring_.Trim());
    dropped_ += dropped;
    if (!recorded->status.ok()) {
      MakeRoom(recorded->status);
      fmt::print(stderr, "xenoscope: {}: {}\n", name, Message(recorded->status));
    }
    if (pusher_) pusher_->Push(name + '~');  // after all names, this one included
    Show(name, *recorded);
    KeepBudget(*recorded);
    return absl::OkStatus();
  }

  // Where the disk is full, the oldest slice makes room for the next one.
  void MakeRoom(const absl::Status& why) {
    if (!absl::IsResourceExhausted(why)) return;
    const auto dropped = ring_.RemoveOldest();
    if (dropped.ok()) dropped_ += *dropped;
  }

  void Show(const std::string& name, const sampler::RecordResult& recorded) const {
    const sampler::Progress& last = recorded.last;
    const double seconds = std::chrono::duration<double>(last.elapsed).count();
    const double cpu = std::chrono::duration<double>(last.own_cpu).count();
    fmt::print(stderr, "{}: {:.1f} s, {} samples, {} lost, {:.1f} MB, {:.2f} % of a CPU", name,
               seconds, last.samples, last.lost,
               static_cast<double>(last.sample_bytes + last.trace_bytes) / 1e6,
               100 * cpu / seconds);
    if (pusher_) fmt::print(stderr, "; {} slices pushed, {} dropped", pusher_->pushed(), dropped_);
    fmt::print(stderr, "\n");
  }

  // Sets what the next slice records, by what this one and the push of another one have cost.
  void KeepBudget(const sampler::RecordResult& recorded) {
    if (!limits_) return;
    if (!budget_) {  // this is the first slice, at the full rate
      if (!recorded.info.trace) trace_steps_.clear();
      budget_.emplace(*limits_, trace_steps_.size());
      events_ = recorded.info.events;
    }
    const steady_clock::time_point now = steady_clock::now();
    const double cpu = ProcessorSeconds();
    const sampler::RecordingCost cost{std::chrono::duration<double>(now - measured_).count(),
                                      cpu - cpu_seconds_, recorded.last.sample_bytes,
                                      recorded.last.trace_bytes};
    measured_ = now;
    cpu_seconds_ = cpu;
    if (!budget_->Take(cost)) {
      if (budget_->exceeded()) {
        fmt::print(stderr, "budget: {}: no slice can record less\n", CostText(cost));
      }
      return;
    }
    const sampler::RecordingPlan& plan = budget_->plan();
    const std::string trace =
        plan.trace_step == 0 ? "as asked" : trace_steps_[plan.trace_step - 1].name;
    fmt::print(stderr, "budget: {}: next slices have {:.3g} % of the samples, trace: {}\n",
               CostText(cost), 100 * plan.rate, trace);
  }

  static std::string CostText(const sampler::RecordingCost& cost) {
    return fmt::format(
        "{:.2f} % of a CPU and {:.2f} MB/s", 100 * cost.cpu_seconds / cost.seconds,
        static_cast<double>(cost.sample_bytes + cost.trace_bytes) / 1e6 / cost.seconds);
  }

  // The processor time of this process and of those that it has waited for.
  static double ProcessorSeconds() {
    constexpr double kMicro = 1e-6;
    double seconds = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage usage{};
      if (getrusage(who, &usage) != 0) continue;
      for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
        seconds += static_cast<double>(time.tv_sec) + kMicro * static_cast<double>(time.tv_usec);
      }
    }
    return seconds;
  }

  // A signal ends the recording in order between slices, too, and whichever thread it comes to:
  // those of the pusher are made after this.
  sampler::EndSignals signals_;
  sampler::RecordRequest request_;
  const recording::SliceRing& ring_;
  std::vector<sampler::TraceStep> trace_steps_;
  std::optional<SlicePusher> pusher_;
  std::optional<sampler::RecordingBudget> limits_;
  std::optional<sampler::BudgetController> budget_;
  std::vector<recording::EventInfo> events_;  // of the first slice
  steady_clock::time_point measured_ = steady_clock::now();
  double cpu_seconds_ = ProcessorSeconds();  // until measured_
  uint64_t slices_ = 0;
  uint64_t dropped_ = 0;  // slices that were removed before a store had them
  bool ended_ = false;
};

}  // namespace

int64_t ContinuousOptions::JoinAfterNs() const {
  if (join_after_ns) return *join_after_ns;
  // A server removes joined slices by rewriting what all hosts have pushed.
  return push.empty() || store::IsServerUrl(push) ? 0 : kJoinAfterNs;
}

void AddContinuousOptions(Command command, ContinuousOptions& options) {
  command
      .AddFlag("--continuous", options.continuous,
               "Record slices without end, until a signal: each is a recording in the directory of "
               "-o, of which the last ones are kept")
      .Group(kContinuousGroup);
  command.AddOption("--slice", options.slice_s, "Length of a slice in seconds")
      .Range(kMinSlice, kMaxSlice)
      .ValueName("SECONDS")
      .ShowDefault()
      .Group(kContinuousGroup);
  command
      .AddOption("--keep", options.keep,
                 "What is kept: a number of slices, or bytes as 500MB or 5GB")
      .ValueName("N|SIZE")
      .ShowDefault()
      .Group(kContinuousGroup);
  command
      .AddOption("--push", options.push,
                 "Push the recording to this store at its end: sqlite:FILE or "
                 "clickhouse://HOST:PORT/DATABASE. With --continuous, push each slice; while that "
                 "fails, slices wait in the directory until they are removed as the oldest")
      .ValueName("URL");
  command
      .AddWordOption(
          "--join-after",
          [&options](const std::string& text) {
            options.join_after_ns =
                text == kNever ? 0 : ParseLength("--join-after", text, ", nor never");
          },
          "Join this host's slices in the store to one for each hour, once they are older than "
          "this, such as 2d; never: keep them as they are. Hours need a twentieth of the space "
          "of minutes. Default: 1d in a file, never on a server, where one command can join those "
          "of all hosts")
      .ValueName("TIME|never")
      .Group(kContinuousGroup);
  command
      .AddOption("--budget", options.budget,
                 "What recording may cost: a part of one CPU (2%), bytes written (1MB/s, 500kB/s), "
                 "or both (2%,1MB/s). Where a slice costs more, the next ones take fewer samples "
                 "and trace fewer events, and say so; they take more again when there is room")
      .ValueName("CPU%,SIZE/s")
      .Group(kContinuousGroup);
}

void CheckContinuousOptions(const ContinuousOptions& options) {
  if (!ParseKeep(options.keep)) {
    ThrowUsageError("--keep", fmt::format("'{}' is neither a number of slices, such as 60, nor a "
                                          "size, such as 500MB or 5GB",
                                          options.keep));
  }
  if (!options.push.empty()) {
    const absl::Status url = store::CheckStoreUrl(options.push);
    if (!url.ok()) ThrowUsageError("--push", std::string(Message(url)));
  }
  if (options.join_after_ns && (!options.continuous || options.push.empty())) {
    ThrowUsageError("--join-after",
                    "goes with --continuous and --push: it joins what is in that store");
  }
  if (!options.budget.empty() && !options.continuous) {
    ThrowUsageError("--budget", "goes with --continuous: it changes what the next slices record");
  }
  if (!options.budget.empty() && !sampler::ParseBudget(options.budget)) {
    ThrowUsageError("--budget", fmt::format("'{}' is neither a part of a CPU, such as 2%, nor a "
                                            "rate, such as 1MB/s or 500kB/s, nor both as 2%,1MB/s",
                                            options.budget));
  }
}

absl::Status PushRecording(const std::string& recording, const std::string& url) {
  constexpr std::chrono::milliseconds kPollInterval{50};
  const std::vector<std::string> words = {"push", recording, "--to", url};
  XENOSCOPE_ASSIGN_OR_RETURN(sampler::ChildProcess push, StartOwn(words));
  while (!push.Poll()) std::this_thread::sleep_for(kPollInterval);
  if (push.Poll()->Succeeded()) return absl::OkStatus();
  return PreconditionError(
      "{}: the recording is complete, but was not pushed; when the store can take it, run: "
      "xenoscope push {} --to {}",
      recording, recording, url);
}

absl::Status RecordContinuously(const sampler::RecordRequest& request,
                                const ContinuousOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::SliceRing ring,
                             recording::SliceRing::Open(request.output, *ParseKeep(options.keep)));
  sampler::RecordRequest slice = request;
  constexpr double kNsPerSecond = 1e9;
  slice.duration = std::chrono::nanoseconds(static_cast<int64_t>(options.slice_s * kNsPerSecond));
  if (!options.join_after_ns && options.JoinAfterNs() > 0) {
    fmt::print(stderr,
               "slices in the store become one for each hour when they are a day old; to keep "
               "them: --join-after {}\n",
               kNever);
  }
  return ContinuousRecorder(std::move(slice), ring, options).Run();
}

}  // namespace xenoscope::cli
