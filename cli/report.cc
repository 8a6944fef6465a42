// xenoscope report: which functions of which domain the time went to.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/trace_input.h"
#include "correlate/placing.h"
#include "correlate/profile.h"
#include "recording/recording.h"
#include "report/profile_view.h"
#include "report/table_json.h"
#include "report/terminal.h"
#include "symbolizer/load.h"
#include "trace/dialect.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using recording::Recording;
using recording::RecordingInfo;
using recording::Sample;

// From this version on, until xenoprof's end, Xen on AMD logs stale addresses (method.md §2.2).
constexpr trace::XenVersion kFirstStale = trace::MakeVersion(4, 11);
constexpr size_t kDefaultLimit = 20;  // rows of a domain, in text

struct Options {
  std::string input = "xenoscope.xeno";
  std::string by = "domain,mode,function";
  std::vector<std::string> domains;
  std::string event;
  std::string sort = "share";
  std::optional<size_t> limit;
  double threshold = 0;  // percent
  std::string format = "text";
  std::vector<std::string> kernels;
  std::vector<std::string> images;
};

std::vector<std::string> Split(const std::string& list) { return absl::StrSplit(list, ','); }

// The samples of one event of all sources, merged in the order of the ends of their brackets.
class EventSamples : public correlate::SampleSource {
 public:
  static absl::StatusOr<EventSamples> Open(const Recording& recording, uint16_t event) {
    EventSamples samples(event);
    for (size_t i = 0; i < recording.info().sources.size(); ++i) {
      XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream, recording.OpenSamples(i));
      samples.streams_.push_back({std::move(stream), std::nullopt});
    }
    for (Stream& stream : samples.streams_) samples.Advance(stream);
    return samples;
  }

  std::optional<Sample> Next() override {
    Stream* first = nullptr;
    for (Stream& stream : streams_) {
      if (!stream.next) continue;
      if (first == nullptr || stream.next->when.end < first->next->when.end) first = &stream;
    }
    if (first == nullptr) return std::nullopt;
    const Sample sample = *first->next;
    Advance(*first);
    return sample;
  }

  // Samples in damaged parts; complete after the last sample.
  uint64_t Damaged() const {
    uint64_t damaged = 0;
    for (const Stream& stream : streams_) {
      const recording::SampleDamage& damage = stream.samples.reader.damage();
      damaged += damage.skipped_samples + damage.invalid_samples;
    }
    return damaged;
  }

 private:
  struct Stream {
    recording::SampleStream samples;
    std::optional<Sample> next;
  };

  explicit EventSamples(uint16_t event) : event_(event) {}

  void Advance(Stream& stream) const {
    do {
      stream.next = stream.samples.reader.Next();
    } while (stream.next && stream.next->event != event_);
  }

  uint16_t event_;
  std::vector<Stream> streams_;
};

// What one pass over the samples tells of them.
struct Brackets {
  TscRange all{Tsc{std::numeric_limits<uint64_t>::max()}, Tsc{0}};
  Cycles longest = 0;
};

Brackets Survey(EventSamples samples) {
  Brackets brackets;
  while (const std::optional<Sample> sample = samples.Next()) {
    brackets.all.begin = std::min(brackets.all.begin, sample->when.begin);
    brackets.all.end = std::max(brackets.all.end, sample->when.end);
    brackets.longest = std::max(brackets.longest, sample->when.Length());
  }
  return brackets;
}

absl::StatusOr<uint16_t> ChooseEvent(const RecordingInfo& info, const std::string& name) {
  if (info.events.empty()) return NotFoundError("the recording has no samples: no event");
  std::vector<std::string> names;
  for (size_t i = 0; i < info.events.size(); ++i) {
    if (name.empty() || info.events[i].name == name) return static_cast<uint16_t>(i);
    names.push_back(info.events[i].name);
  }
  return NotFoundError("no event {} in the recording; it has {}", name, fmt::join(names, ", "));
}

absl::StatusOr<DomainId> ChooseDomain(const RecordingInfo& info, const std::string& text) {
  for (const recording::DomainInfo& domain : info.domains) {
    if (domain.name == text || ToString(domain.id) == text) return domain.id;
  }
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return DomainId{number};
  return NotFoundError("no domain {} in the recording; `xl list` shows names and numbers", text);
}

// "DOMAIN=FILE".
absl::Status AddSymbols(const RecordingInfo& info, const std::vector<std::string>& given,
                        symbolizer::SourceKind kind, symbolizer::SymbolSources& sources) {
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return InvalidError("not DOMAIN=FILE: {}", text);
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId domain, ChooseDomain(info, text.substr(0, equals)));
    symbolizer::SymbolSource source;
    source.domain = domain;
    source.kind = kind;
    source.path = text.substr(equals + 1);
    source.required = true;
    sources.sources.insert(sources.sources.begin(), std::move(source));
  }
  return absl::OkStatus();
}

// Whether a sample stands for time: the processor's cycles, or the timer that stood in for them.
bool CountsTime(const recording::EventInfo& event) {
  if (!event.clocked_by.empty() && event.clocked_by != "pmu") return true;
  return event.name.find("cycle") != std::string::npos ||
         event.name.find("cpu_clk") != std::string::npos;
}

std::string EventText(const recording::EventInfo& event) {
  if (event.clocked_by.empty() || event.clocked_by == "pmu") return event.name;
  return fmt::format("{} (clocked by {})", event.name, event.clocked_by);
}

trace::Dialect Complete(trace::Dialect known, const trace::TraceFile& trace) {
  if (known.vendor != trace::Vendor::kUnknown) return known;
  trace::DialectEvidence evidence;
  trace::OrderedStream stream = trace.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind == trace::ItemKind::kRecord) evidence.Observe(item->record);
    if (evidence.Enough()) break;
  }
  const trace::Dialect inferred = evidence.Conclude();
  known.vendor = inferred.vendor;
  known.vendor_source = inferred.vendor_source;
  return known;
}

void Warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "xenoscope: {}\n", warning);
}

// Places the samples by the trace, or without one. Fills what the report says of it.
absl::Status PlaceAll(const std::optional<TraceInput>& input, const RecordingInfo& info,
                      const Brackets& brackets, EventSamples& samples, correlate::Profile& profile,
                      report::ProfileReport& out) {
  out.sampled = brackets.all;
  if (info.started < info.stopped) out.sampled = {info.started, info.stopped};
  if (!input) {
    out.counts = correlate::PlaceWithoutTrace(samples, profile);
    return absl::OkStatus();
  }
  const trace::Dialect dialect = Complete(input->dialect, input->trace);
  out.vendor = dialect.vendor;
  correlate::PlacingOptions placing;
  placing.sampled = out.sampled;
  placing.longest_bracket = brackets.longest;
  placing.vendor = dialect.vendor;
  if (dialect.vendor == trace::Vendor::kSvm && dialect.before_version > kFirstStale) {
    placing.logged_rip = correlate::LoggedRip::kOfLastEntry;
  }
  correlate::Placer placer(placing, samples, profile);
  trace::OrderedStream stream = input->trace.Stream();
  while (const trace::Item* item = stream.Next()) placer.Take(*item);
  XENOSCOPE_RETURN_IF_ERROR(placer.Finish());
  out.counts = placer.counts();
  return absl::OkStatus();
}

absl::Status Report(const Options& options) {
  if (std::error_code error; std::filesystem::is_regular_file(options.input, error)) {
    return InvalidError(
        "{}: not a recording, and only a recording has samples; `xenoscope summary` reads a bare "
        "trace",
        options.input);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const Recording bare, Recording::Open(options.input));
  std::optional<TraceInput> input;
  if (auto opened = OpenTraceInput({.input = options.input, .clock = {}, .dialect = {}});
      opened.ok()) {
    input = *std::move(opened);
  } else if (!absl::IsNotFound(opened.status())) {
    return opened.status();
  }
  const Recording& recording = input ? *input->recording : bare;
  const RecordingInfo& info = recording.info();

  report::ProfileReport out;
  for (const std::string& name : Split(options.by)) {
    out.by.push_back(*report::DimensionByName(name));
  }
  report::ProfileSelection selection;
  selection.sort = options.sort;
  selection.threshold = options.threshold / 100;
  selection.limit = options.limit.value_or(options.format == "text" ? kDefaultLimit : 0);
  for (const std::string& text : options.domains) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId domain, ChooseDomain(info, text));
    selection.domains.push_back(domain);
  }
  if (!selection.domains.empty() &&
      std::find(out.by.begin(), out.by.end(), Dimension::kDomain) == out.by.end()) {
    out.by.insert(out.by.begin(), Dimension::kDomain);
  }

  XENOSCOPE_ASSIGN_OR_RETURN(const uint16_t event, ChooseEvent(info, options.event));
  XENOSCOPE_ASSIGN_OR_RETURN(EventSamples survey, EventSamples::Open(recording, event));
  XENOSCOPE_ASSIGN_OR_RETURN(EventSamples samples, EventSamples::Open(recording, event));
  symbolizer::SymbolSources sources = symbolizer::SourcesInRecording(recording.path());
  XENOSCOPE_RETURN_IF_ERROR(
      AddSymbols(info, options.kernels, symbolizer::SourceKind::kKernel, sources));
  XENOSCOPE_RETURN_IF_ERROR(
      AddSymbols(info, options.images, symbolizer::SourceKind::kImage, sources));
  XENOSCOPE_ASSIGN_OR_RETURN(const symbolizer::LoadedSymbols symbols,
                             symbolizer::LoadSymbols(sources));
  Warn(symbols.warnings);

  out.event = EventText(info.events[event]);
  out.is_time = CountsTime(info.events[event]);
  out.traced = input.has_value();
  out.clock = recording.clock();
  for (const recording::StreamInfo& stream : info.streams) {
    out.lost_in_buffers += stream.logged.lost;
  }
  out.domain_name = [&info](DomainId domain) {
    const recording::DomainInfo* known = info.Domain(domain);
    return known == nullptr ? std::string() : known->name;
  };
  correlate::Profile profile({out.by, out.is_time, static_cast<double>(info.events[event].period)},
                             *symbols.resolver);
  XENOSCOPE_RETURN_IF_ERROR(
      PlaceAll(input, info, Survey(std::move(survey)), samples, profile, out));
  out.damaged = samples.Damaged();
  XENOSCOPE_ASSIGN_OR_RETURN(out.result, profile.Finish());
  Warn(symbols.resolver->Misfits());

  if (options.format == "json") return WriteStdout(report::Dump(ProfileJson(out, selection)));
  if (options.format == "csv") return WriteStdout(ProfileCsv(out, selection));
  return WriteStdout(ProfileText(out, selection, report::StdoutStyle()));
}

void Check(const Options& options) {
  std::vector<Dimension> by;
  for (const std::string& name : Split(options.by)) {
    const auto dimension = report::DimensionByName(name);
    if (!dimension) {
      throw CLI::ValidationError(
          "--by",
          fmt::format("no {}; choose from domain,vcpu,pcpu,mode,exit,image,function,address",
                      std::string(name)));
    }
    if (std::find(by.begin(), by.end(), *dimension) != by.end()) {
      throw CLI::ValidationError("--by", fmt::format("{} twice", name));
    }
    by.push_back(*dimension);
  }
  if (!report::IsSortKey(by, options.sort)) {
    throw CLI::ValidationError(
        "--sort",
        fmt::format("no column {}; choose from {},samples,share,cycles", options.sort, options.by));
  }
}

}  // namespace

void AddReport(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report", "Samples, time and its uncertainty: by domain, mode, function, VM exit, ...");
  command->add_option("RECORDING", options->input, "what `xenoscope record` wrote")
      ->capture_default_str();
  command
      ->add_option("--by", options->by,
                   "columns: any of domain,vcpu,pcpu,mode,exit,image,function,address")
      ->capture_default_str();
  command
      ->add_option("-d,--domain", options->domains,
                   "only these, by name or number; shares stay "
                   "those of all")
      ->delimiter(',');
  command->add_option("-e,--event", options->event, "the event; default: the first recorded");
  command->add_option("-s,--sort", options->sort, "order by this column")->capture_default_str();
  command->add_option("-n,--limit", options->limit,
                      "rows of each domain; 0: all; default: 20, or all in csv and json");
  command->add_option("-t,--threshold", options->threshold, "only rows with this share, in percent")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--format", options->format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  command
      ->add_option("--kernel", options->kernels,
                   "DOMAIN=FILE: a kernel's kallsyms, System.map or vmlinux")
      ->allow_extra_args(false);
  command
      ->add_option("--image", options->images,
                   "DOMAIN=FILE: symbols of a program that runs in the domain")
      ->allow_extra_args(false);
  command->footer(
      "Example:\n"
      "  xenoscope report web.xeno\n"
      "  xenoscope report web.xeno --by domain,exit,function --limit 10\n"
      "  xenoscope report web.xeno --domain web1 --kernel web1=System.map --format json");
  command->callback([options, &run] {
    Check(*options);
    run = [options] { return Report(*options); };
  });
}

}  // namespace xenoscope::cli
