#include "sampler/budget.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace xenoscope::sampler {
namespace {

constexpr double kPercent = 100;
constexpr double kMaxNumber = 100'000;
// Where a slice cost too much, the next one is to take so much of the budget.
constexpr double kAim = 0.9;
// The rate falls to no less than this part at once: one busy slice says little about the next.
constexpr double kMostAtOnce = 0.25;
// Below this part of the budget there is room for twice the rate.
constexpr double kRoom = 0.5;
// From this part on, all samples are taken.
constexpr double kAlmostAll = 0.99;
// Samples a second unless an event says something else.
constexpr double kUsualHz = 1000;

struct Unit {
  std::string_view name;
  double value;
  double RecordingBudget::*limit;
};
constexpr std::array kUnits = {Unit{"%", 1 / kPercent, &RecordingBudget::cpu},
                               Unit{"MB/s", 1e6, &RecordingBudget::bytes_per_second},
                               Unit{"kB/s", 1e3, &RecordingBudget::bytes_per_second}};

// Sets the limit that one word says: "2%". Returns whether it is one, and not set already.
bool SetLimit(std::string_view word, RecordingBudget& budget) {
  double number = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, number);
  const std::string_view unit(stopped, static_cast<size_t>(end - stopped));
  const auto* const found = std::ranges::find(kUnits, unit, &Unit::name);
  if (error != std::errc() || found == kUnits.end()) return false;
  if (!(number > 0 && number <= kMaxNumber) || budget.*found->limit != 0) return false;
  budget.*found->limit = number * found->value;
  return true;
}

// Returns the number of a second or between two samples, 1 at least.
uint64_t Scaled(double number, double by) {
  return static_cast<uint64_t>(std::max(1.0, std::round(number * by)));
}

// Returns the events of a request that names none: those that its first source chose.
std::vector<EventSpec> ChosenEvents(std::span<const recording::EventInfo> events) {
  std::vector<EventSpec> specs;
  for (const recording::EventInfo& event : events) {
    if (event.source != "xenoprof" && event.source != "perf") continue;
    if (std::ranges::find(specs, event.name, &EventSpec::name) != specs.end()) continue;
    specs.emplace_back().name = event.name;
  }
  return specs;
}

void LowerRate(std::span<const recording::EventInfo> events, double rate, SampleRequest& samples) {
  if (samples.events.empty()) samples.events = ChosenEvents(events);
  for (EventSpec& spec : samples.events) {
    const auto known = std::ranges::find(events, spec.name, &recording::EventInfo::name);
    // xenoprof has periods only; perf finds the period of a rate itself.
    const bool counted = known != events.end() && known->source == "xenoprof";
    if (!spec.period && !spec.hz && counted) spec.period = known->period;
    if (spec.period) {
      spec.period = Scaled(static_cast<double>(*spec.period), 1 / rate);
    } else {
      spec.hz = Scaled(spec.hz ? static_cast<double>(*spec.hz) : kUsualHz, rate);
    }
  }
  samples.poll_hz *= rate;
  if (samples.hpet_hz) {
    samples.hpet_hz = static_cast<uint32_t>(Scaled(static_cast<double>(*samples.hpet_hz), rate));
  }
}

}  // namespace

std::optional<RecordingBudget> ParseBudget(std::string_view text) {
  RecordingBudget budget;
  while (true) {
    const size_t comma = text.find(',');
    if (!SetLimit(text.substr(0, comma), budget)) return std::nullopt;
    if (comma == std::string_view::npos) return budget;
    text.remove_prefix(comma + 1);
  }
}

bool BudgetController::Take(const RecordingCost& cost) {
  if (cost.seconds <= 0) return false;
  double load = 0;
  if (budget_.cpu > 0) load = cost.cpu_seconds / (cost.seconds * budget_.cpu);
  if (budget_.bytes_per_second > 0) {
    const auto bytes = static_cast<double>(cost.sample_bytes + cost.trace_bytes);
    load = std::max(load, bytes / (cost.seconds * budget_.bytes_per_second));
  }
  const RecordingPlan before = plan_;
  exceeded_ = load > 1;
  if (exceeded_) {
    if (raised_) patience_ = std::min(2 * patience_, kMostPatience);
    Lower(cost, load);
  } else if (raised_) {
    patience_ = std::max(patience_ / 2, kLeastPatience);
  }
  raised_ = false;
  calm_ = load < kRoom ? calm_ + 1 : 0;
  if (calm_ >= patience_) Raise();
  return plan_ != before;
}

void BudgetController::Lower(const RecordingCost& cost, double load) {
  const bool can_trace_less = plan_.trace_step < trace_steps_;
  const bool can_sample_less = plan_.rate > kLeastRate;
  if (can_trace_less && (cost.trace_bytes > cost.sample_bytes || !can_sample_less)) {
    ++plan_.trace_step;
  } else if (can_sample_less) {
    plan_.rate = std::max(kLeastRate, plan_.rate * std::max(kAim / load, kMostAtOnce));
  }
}

void BudgetController::Raise() {
  calm_ = 0;
  if (plan_.rate < 1) {
    const double rate = plan_.rate / kRoom;
    plan_.rate = rate < kAlmostAll ? rate : 1;
  } else if (plan_.trace_step > 0) {
    --plan_.trace_step;
  } else {
    return;
  }
  raised_ = true;
}

std::vector<TraceStep> TraceStepsOf(const RecordRequest& asked) {
  std::vector<TraceStep> steps;
  if (!asked.trace) return steps;
  trace::EventMask last = asked.trace->event_mask;
  for (size_t i = trace::kMaskPresets.size(); i > 0; --i) {
    const trace::NamedMask& preset = trace::kMaskPresets[i - 1];
    const trace::EventMask mask{last.value & preset.mask.value};
    if (mask == last || mask.IsEmpty()) continue;
    steps.push_back({std::string(preset.name), mask});
    last = mask;
  }
  if (asked.samples) steps.push_back({"none", std::nullopt});
  return steps;
}

RecordRequest Planned(const RecordRequest& asked, std::span<const TraceStep> steps,
                      std::span<const recording::EventInfo> events, const RecordingPlan& plan) {
  RecordRequest request = asked;
  if (request.samples && plan.rate < 1) LowerRate(events, plan.rate, *request.samples);
  if (plan.trace_step == 0) return request;
  const TraceStep& step = steps[plan.trace_step - 1];
  if (step.mask) {
    request.trace->event_mask = *step.mask;
    request.trace->events = step.name;
  } else {
    request.trace.reset();
  }
  return request;
}

}  // namespace xenoscope::sampler
