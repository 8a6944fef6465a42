#include "report/export/firefox.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "report/export/timeline_names.h"
#include "report/markup.h"
#include "trace/exit_name.h"

namespace xenoscope::report {
namespace {

using correlate::ContextKind;
using correlate::PlacedSample;
using correlate::RunstateInterval;
using correlate::Segment;
using correlate::SegmentKind;
using correlate::StackFrame;
using correlate::TimelineState;
using nlohmann::ordered_json;

constexpr int kFormatVersion = 60;  // meta.preprocessedProfileVersion
constexpr int kGeckoVersion = 31;  // meta.version: of profiles as Firefox gives them, not used here
constexpr int kLibrary = 1;        // resourceTable.type
// The values of markers.phase.
constexpr int kInstantEvent = 0;
constexpr int kInterval = 1;
constexpr size_t kMostVisibleThreads = 64;

constexpr std::array<std::string_view, 4> kMarkerTypes = {"VM exit", "wait", "hypercall or trap",
                                                          "drain interval"};

std::string Quoted(const std::string& text) { return JsonText(ordered_json(text)); }

// Adds `"key":[...]` with what `put(out, item)` writes of each item that `for_each(visit)` visits.
template <typename ForEach, typename Put>
void PutEach(std::string_view key, ForEach for_each, Put put, SinkText& out) {
  fmt::format_to(std::back_inserter(out.text()), "\"{}\":[", key);
  const char* comma = "";
  for_each([&](const auto& item) {
    out += comma;
    put(out.text(), item);
    comma = ",";
    out.EndPiece();
  });
  out += "],";
}

// The same with the items of a list.
template <typename Items, typename Put>
void PutColumn(std::string_view key, const Items& items, Put put, SinkText& out) {
  PutEach(
      key,
      [&items](auto visit) {
        for (const auto& item : items) visit(item);
      },
      put, out);
}

// Adds a column whose items are all the same.
template <typename Items>
void PutSame(std::string_view key, const Items& items, std::string_view same, SinkText& out) {
  PutColumn(
      key, items, [same](std::string& to, const auto& /*item*/) { to += same; }, out);
}

void PutLength(size_t length, SinkText& out) {
  fmt::format_to(std::back_inserter(out.text()), "\"length\":{}", length);
}

template <typename T>
void PutNumber(std::string& out, T number) {
  fmt::format_to(std::back_inserter(out), "{}", number);
}

}  // namespace

FirefoxWriter::Category FirefoxWriter::CategoryOf(Mode mode) {
  switch (mode) {
    case Mode::kUser:
      return Category::kUser;
    case Mode::kKernel:
      return Category::kKernel;
    case Mode::kXen:
      break;
  }
  return Category::kXen;
}

double FirefoxWriter::Milliseconds(Tsc at) const {
  const Tsc zero = zero_.value_or(report_.sampled.begin);
  if (at < zero) return 0;
  return static_cast<double>(report_.clock.Nanoseconds(at - zero)) / 1e6;
}

void FirefoxWriter::OnRecord(const trace::Record& record) {
  if (!zero_) zero_ = record.tsc;
}

FirefoxWriter::Thread& FirefoxWriter::ThreadOf(VcpuRef vcpu, bool drained) {
  const auto [at, is_new] =
      thread_index_.try_emplace({vcpu, drained}, static_cast<uint32_t>(threads_.size()));
  if (is_new)
    threads_.push_back({.vcpu = vcpu,
                        .drained = drained,
                        .number = static_cast<uint32_t>(threads_.size()),
                        .markers = {},
                        .bracket = {}});
  return threads_[at->second];
}

void FirefoxWriter::AddMarker(VcpuRef vcpu, TscRange range, std::string_view name,
                              MarkerKind kind) {
  if (++markers_ > kMostMarkers) {
    ++left_out_;
    return;
  }
  ThreadOf(vcpu, kind == MarkerKind::kDrain)
      .markers.push_back({range.begin, range.end, texts_.Intern(name), kind});
}

void FirefoxWriter::OnRunstateInterval(const RunstateInterval& interval) {
  if (IsIdle(interval.vcpu) || interval.state != TimelineState::kRunnable) return;
  if (interval.range.Empty()) return;
  AddMarker(interval.vcpu, interval.range, RunstateName(interval), MarkerKind::kWait);
}

void FirefoxWriter::OnSegment(const Segment& segment) {
  if (IsIdle(segment.vcpu) || segment.range.Empty() || segment.kind != SegmentKind::kExit) return;
  AddMarker(segment.vcpu, segment.range,
            trace::ExitName(report_.vendor, segment.nested, segment.reason), MarkerKind::kExit);
}

void FirefoxWriter::OnMark(const correlate::Mark& mark) {
  if (IsIdle(mark.vcpu)) return;
  AddMarker(mark.vcpu, {mark.tsc, mark.tsc}, MarkName(mark), MarkerKind::kMark);
}

uint32_t FirefoxWriter::SubcategoryOf(const std::optional<correlate::Context>& context) {
  if (!context || context->kind != ContextKind::kExit) return 0;
  const uint32_t name =
      texts_.Intern(trace::ExitName(report_.vendor, context->nested, context->reason));
  const auto known = std::ranges::find(subcategories_, name);
  if (known == subcategories_.end()) {
    subcategories_.push_back(name);
    return static_cast<uint32_t>(subcategories_.size());
  }
  return static_cast<uint32_t>(known - subcategories_.begin()) + 1;
}

uint32_t FirefoxWriter::FunctionNumber(const StackFrame& frame) {
  const std::string name = Printable(FrameName(report_, stacks_.inlined(), stacks_.exits(), frame));
  const bool in_image =
      frame.kind == StackFrame::Kind::kFunction || frame.kind == StackFrame::Kind::kInlined;
  const std::string image = in_image ? Printable(resolver_.Describe(frame.function).image) : "";
  const std::pair key(texts_.Intern(name), texts_.Intern(image));
  const auto [at, is_new] =
      function_index_.try_emplace(key, static_cast<uint32_t>(functions_.size()));
  if (is_new) {
    functions_.push_back(key);
    if (image_index_.try_emplace(key.second, static_cast<uint32_t>(images_.size())).second) {
      images_.push_back(key.second);
    }
  }
  return at->second;
}

uint32_t FirefoxWriter::StackOf(const PlacedSample& placed) {
  uint32_t number = stacks_.Add(placed, resolver_);
  uint32_t subcategory = 0;
  if (const auto context = LikelyContext(placed.places)) {
    number = stacks_.WithExit(number, *context);
    if (placed.mode() == Mode::kXen) subcategory = SubcategoryOf(context);
  }
  const auto [known, is_new] = stack_index_.try_emplace({number, subcategory}, 0);
  if (!is_new) return known->second;
  const correlate::Stack& stack = stacks_.at(number);
  uint32_t prefix = 0;
  const correlate::Stack outermost_first(stack.rbegin(), stack.rend());
  for (const StackFrame& frame : outermost_first) {
    const Category category = CategoryOf(frame.mode);
    const Frame wanted{FunctionNumber(frame), category,
                       category == Category::kXen ? subcategory : 0};
    const auto [at, new_frame] =
        frame_index_.try_emplace(wanted, static_cast<uint32_t>(frames_.size()));
    if (new_frame) frames_.push_back(wanted);
    const auto [link, new_link] =
        chain_index_.try_emplace({at->second, prefix}, static_cast<uint32_t>(chain_.size()));
    if (new_link) chain_.emplace_back(at->second, prefix);
    prefix = link->second + 1;
  }
  return stack_index_[{number, subcategory}] = prefix - 1;
}

void FirefoxWriter::OnPlaced(const PlacedSample& placed) {
  const bool instant = placed.when.Length() <= 1;
  const uint32_t stack = StackOf(placed);
  Thread& thread = ThreadOf(placed.vcpu, !instant);
  const uint32_t number = thread.number;
  if (!instant && thread.bracket != placed.when) {
    thread.bracket = placed.when;
    AddMarker(placed.vcpu, placed.when, "drain", MarkerKind::kDrain);
  }
  const Tsc at = instant ? placed.when.begin : placed.when.end;
  for (uint64_t i = 0; i < placed.count && spooled_.ok(); ++i) {
    spooled_ = samples_.Add({.at = at, .thread = number, .stack = stack});
  }
}

void FirefoxWriter::WriteMeta(const std::string& title, SinkText& out) const {
  ordered_json xen = ordered_json::array({"Other"});
  for (const uint32_t name : subcategories_) xen.push_back(texts_.all()[name]);
  const ordered_json other = ordered_json::array({"Other"});
  ordered_json schemas = ordered_json::array();
  for (const std::string_view type : kMarkerTypes) {
    schemas.push_back({{"name", type},
                       {"display", {"marker-chart", "marker-table", "timeline-overview"}},
                       {"fields", ordered_json::array()}});
  }
  ordered_json notes = ordered_json::array();
  const auto note = [&notes](std::string_view label, const std::string& text) {
    notes.push_back({{"label", label}, {"format", "string"}, {"value", text}});
  };
  note("Samples", fmt::format("{} of {} attributed, of {}", report_.counts.Attributed(),
                              report_.counts.samples, report_.event));
  if (left_out_ > 0) {
    note("Markers", fmt::format("{} of {} left out: --from and --to make a profile of a part",
                                left_out_, markers_));
  }
  for (const std::string& caution : report_.cautions) note("Note", caution);
  ordered_json visible = ordered_json::array();
  for (size_t i = 0; i < std::min(threads_.size(), kMostVisibleThreads); ++i) visible.push_back(i);
  const double seconds = report_.clock.Seconds(report_.sampled.Length());
  const auto samples = static_cast<double>(std::max<uint64_t>(report_.counts.samples, 1));
  const Tsc zero = zero_.value_or(report_.sampled.begin);
  const std::optional<uint64_t> begin = UtcOf(report_, zero);
  const ordered_json meta = {
      {"version", kGeckoVersion},
      {"preprocessedProfileVersion", kFormatVersion},
      {"product", title},
      {"importedFrom", "Xenoscope"},
      {"interval", 1000 * seconds / samples},
      {"startTime", begin ? static_cast<double>(*begin) / 1e6 : 0},
      {"processType", 0},
      {"stackwalk", 1},
      {"debug", false},
      {"symbolicated", true},
      {"symbolicationNotSupported", true},
      {"usesOnlyOneStackType", true},
      {"sourceCodeIsNotOnSearchfox", true},
      {"keepProfileThreadOrder", true},
      {"initialVisibleThreads", std::move(visible)},
      {"sampleUnits", {{"time", "ms"}, {"eventDelay", "ms"}, {"threadCPUDelta", "µs"}}},
      {"categories",
       {{{"name", "Other"}, {"color", "grey"}, {"subcategories", other}},
        {{"name", "User"}, {"color", "green"}, {"subcategories", other}},
        {{"name", "Kernel"}, {"color", "orange"}, {"subcategories", other}},
        {{"name", "Xen"}, {"color", "purple"}, {"subcategories", std::move(xen)}},
        {{"name", "Waiting"}, {"color", "lightblue"}, {"subcategories", other}}}},
      {"markerSchema", std::move(schemas)},
      {"extra", ordered_json::array({{{"label", "Xenoscope"}, {"entries", std::move(notes)}}})}};
  out += "\"meta\":" + JsonText(meta) + ",\n";
}

void FirefoxWriter::WriteTables(SinkText& out) const {
  out += "\"shared\":{\"stackTable\":{";
  PutColumn(
      "frame", chain_, [](std::string& to, const auto& link) { PutNumber(to, link.first); }, out);
  PutColumn(
      "prefix", chain_,
      [](std::string& to, const auto& link) {
        link.second == 0 ? to += "null" : (PutNumber(to, link.second - 1), to);
      },
      out);
  PutLength(chain_.size(), out);
  out += "},\n\"frameTable\":{";
  PutColumn(
      "func", frames_, [](std::string& to, const Frame& frame) { PutNumber(to, frame.function); },
      out);
  PutColumn(
      "category", frames_,
      [](std::string& to, const Frame& frame) { PutNumber(to, static_cast<int>(frame.category)); },
      out);
  PutColumn(
      "subcategory", frames_,
      [](std::string& to, const Frame& frame) { PutNumber(to, frame.subcategory); }, out);
  PutSame("address", frames_, "-1", out);
  PutSame("inlineDepth", frames_, "0", out);
  for (const std::string_view key : {"nativeSymbol", "innerWindowID", "line", "column"}) {
    PutSame(key, frames_, "null", out);
  }
  PutLength(frames_.size(), out);
  out += "},\n\"funcTable\":{";
  PutColumn(
      "name", functions_, [](std::string& to, const auto& each) { PutNumber(to, each.first); },
      out);
  PutColumn(
      "resource", functions_,
      [this](std::string& to, const auto& each) {
        // Frames of exits are of no image.
        PutNumber(to, texts_.all()[each.second].empty()
                          ? -1
                          : static_cast<int64_t>(image_index_.at(each.second)));
      },
      out);
  for (const std::string_view key : {"isJS", "relevantForJS"}) {
    PutSame(key, functions_, "false", out);
  }
  for (const std::string_view key : {"source", "lineNumber", "columnNumber"}) {
    PutSame(key, functions_, "null", out);
  }
  PutLength(functions_.size(), out);
  out += "},\n\"resourceTable\":{";
  PutColumn(
      "name", images_, [](std::string& to, uint32_t name) { PutNumber(to, name); }, out);
  PutSame("lib", images_, "null", out);
  PutSame("host", images_, "null", out);
  PutSame("type", images_, fmt::format("{}", kLibrary), out);
  PutLength(images_.size(), out);
  out +=
      "},\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],"
      "\"length\":0},\n\"sources\":{\"id\":[],\"filename\":[],\"length\":0},\n\"stringArray\":[";
  const char* comma = "";
  for (const std::string& text : texts_.all()) {
    out += comma + Quoted(text);
    comma = ",";
    out.EndPiece();
  }
  out += "]},\n";
}

void FirefoxWriter::WriteSamples(const Thread& thread, SinkText& out) const {
  const auto each = [&](auto visit) { samples_.ForEach(thread.number, visit); };
  out += "\"samples\":{";
  PutEach(
      "time", each,
      [this](std::string& to, const SampleSpool::Sample& sample) {
        fmt::format_to(std::back_inserter(to), "{:.6f}", Milliseconds(sample.at));
      },
      out);
  PutEach(
      "stack", each,
      [](std::string& to, const SampleSpool::Sample& sample) { PutNumber(to, sample.stack); }, out);
  out += "\"weight\":null,\"weightType\":\"samples\",";
  PutLength(samples_.CountOf(thread.number), out);
  out += "},\n";
}

void FirefoxWriter::WriteMarkers(const Thread& thread, SinkText& out) const {
  out += "\"markers\":{";
  const auto is_instant = [](const Marker& marker) { return marker.kind == MarkerKind::kMark; };
  PutColumn(
      "name", thread.markers,
      [](std::string& to, const Marker& marker) { PutNumber(to, marker.name); }, out);
  PutColumn(
      "startTime", thread.markers,
      [this](std::string& to, const Marker& marker) {
        fmt::format_to(std::back_inserter(to), "{:.6f}", Milliseconds(marker.begin));
      },
      out);
  PutColumn(
      "endTime", thread.markers,
      [&](std::string& to, const Marker& marker) {
        if (is_instant(marker)) {
          to += "null";
        } else {
          fmt::format_to(std::back_inserter(to), "{:.6f}", Milliseconds(marker.end));
        }
      },
      out);
  PutColumn(
      "phase", thread.markers,
      [&](std::string& to, const Marker& marker) {
        PutNumber(to, is_instant(marker) ? kInstantEvent : kInterval);
      },
      out);
  PutColumn(
      "category", thread.markers,
      [](std::string& to, const Marker& marker) {
        Category category = Category::kXen;
        if (marker.kind == MarkerKind::kWait) category = Category::kWaiting;
        if (marker.kind == MarkerKind::kDrain) category = Category::kOther;
        PutNumber(to, static_cast<int>(category));
      },
      out);
  PutColumn(
      "data", thread.markers,
      [](std::string& to, const Marker& marker) {
        fmt::format_to(std::back_inserter(to), "{{\"type\":\"{}\"}}",
                       kMarkerTypes.at(static_cast<size_t>(marker.kind)));
      },
      out);
  PutLength(thread.markers.size(), out);
  out += "}";
}

void FirefoxWriter::WriteThread(Thread& thread, bool first_of_domain, SinkText& out) const {
  std::ranges::stable_sort(thread.markers, {}, &Marker::begin);
  const DomainId domain = thread.vcpu.domain;
  const std::string name = ToString(thread.vcpu) + (thread.drained ? " (drained)" : "");
  fmt::format_to(
      std::back_inserter(out.text()),
      "{{\"name\":{},\"processName\":{},\"pid\":\"{}\",\"tid\":{},\"isMainThread\":{},"
      "\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
      "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],"
      "\"showMarkersInTimeline\":true,\n",
      Quoted(name), Quoted(Printable(DomainTitle(domain, report_.domain_name(domain)))),
      ToString(domain), Quoted(name), first_of_domain);
  WriteSamples(thread, out);
  WriteMarkers(thread, out);
  out += "}";
}

absl::Status FirefoxWriter::Write(const std::string& title, const Sink& sink) {
  if (spooled_.ok()) spooled_ = samples_.Finish();
  XENOSCOPE_RETURN_IF_ERROR(spooled_);
  // By domain and vCPU, what is drained last.
  std::ranges::stable_sort(
      threads_, {}, [](const Thread& thread) { return std::pair(thread.vcpu, thread.drained); });
  SinkText out(sink);
  out += "{";
  WriteMeta(title, out);
  WriteTables(out);
  out += "\"libs\":[],\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\n\"threads\":[\n";
  std::set<DomainId> domains;
  const char* comma = "";
  for (Thread& thread : threads_) {
    out += comma;
    WriteThread(thread, domains.insert(thread.vcpu.domain).second, out);
    comma = ",\n";
  }
  out += "]}\n";
  return out.Finish();
}

}  // namespace xenoscope::report
