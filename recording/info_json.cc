#include "recording/info_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"

namespace xenoscope::recording {
namespace {

using Json = nlohmann::ordered_json;

// The words of an enumeration's values, for both directions.
template <typename E, size_t N>
using Words = std::array<std::pair<E, const char*>, N>;

constexpr Words<State, 3> kStates{{{State::kRecording, "recording"},
                                   {State::kComplete, "complete"},
                                   {State::kEndedEarly, "ended_early"}}};
constexpr Words<DomainType, 4> kTypes{{{DomainType::kUnknown, "unknown"},
                                       {DomainType::kPv, "pv"},
                                       {DomainType::kPvh, "pvh"},
                                       {DomainType::kHvm, "hvm"}}};
constexpr Words<Role, 4> kRoles{{{Role::kNone, "none"},
                                 {Role::kInitiator, "initiator"},
                                 {Role::kActive, "active"},
                                 {Role::kPassive, "passive"}}};
constexpr Words<CpuVendor, 3> kVendors{
    {{CpuVendor::kUnknown, "unknown"}, {CpuVendor::kIntel, "intel"}, {CpuVendor::kAmd, "amd"}}};
constexpr Words<SymbolFile::Kind, 9> kKinds{{{SymbolFile::Kind::kXensyms, "xensyms"},
                                             {SymbolFile::Kind::kKallsyms, "kallsyms"},
                                             {SymbolFile::Kind::kModules, "modules"},
                                             {SymbolFile::Kind::kVmlinux, "vmlinux"},
                                             {SymbolFile::Kind::kImage, "image"},
                                             {SymbolFile::Kind::kVdso, "vdso"},
                                             {SymbolFile::Kind::kPerfMaps, "perf-maps"},
                                             {SymbolFile::Kind::kLivepatches, "livepatches"},
                                             {SymbolFile::Kind::kBootTrace, "boot-trace"}}};

using Change = DomainChange::Kind;
constexpr Words<Change, 12> kChanges{{{Change::kUnknown, "unknown"},
                                      {Change::kCreated, "created"},
                                      {Change::kDestroyed, "destroyed"},
                                      {Change::kPaused, "paused"},
                                      {Change::kUnpaused, "unpaused"},
                                      {Change::kSuspended, "suspended"},
                                      {Change::kResumed, "resumed"},
                                      {Change::kPoweredOff, "powered_off"},
                                      {Change::kRebooted, "rebooted"},
                                      {Change::kCrashed, "crashed"},
                                      {Change::kVcpuOnline, "vcpu_online"},
                                      {Change::kVcpuOffline, "vcpu_offline"}}};

template <typename E, size_t N>
const char* Word(const Words<E, N>& words, E value) {
  for (const auto& [known, word] : words) {
    if (known == value) return word;
  }
  return "unknown";
}

// A reader of the values of one JSON object. It checks each value and keeps the first error.
class Fields {
 public:
  Fields(const Json& object, std::string where, absl::Status& status)
      : object_(object), where_(std::move(where)), status_(status) {
    if (!object_.is_object()) Fail("is not an object");
  }

  void Read(const char* key, std::string& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return FailAt(key, "is not a string");
    out = value->get<std::string>();
  }

  void Read(const char* key, bool& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return FailAt(key, "is not true or false");
    out = value->get<bool>();
  }

  template <typename T>
  requires std::is_unsigned_v<T>
  void Read(const char* key, T& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_number_unsigned()) return FailAt(key, "is not a whole number");
    const auto number = value->get<uint64_t>();
    if (number > std::numeric_limits<T>::max()) return FailAt(key, "is out of range");
    out = static_cast<T>(number);
  }

  // Sets `value` to what the word stands for; a word that this version does not know leaves the
  // default.
  template <typename E, size_t N>
  void Read(const char* key, const Words<E, N>& words, E& out) const {
    std::string word;
    Read(key, word);
    for (const auto& [value, known] : words) {
      if (word == known) out = value;
    }
  }

  // Calls `read(element)` for each element of the array.
  template <typename F>
  void ForEach(const char* key, F read) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return FailAt(key, "is not a list");
    size_t i = 0;
    for (const Json& element : *value) {
      read(Fields(element, fmt::format("{}{}[{}].", where_, key, i++), status_));
    }
  }

  template <typename F>
  void IfPresent(const char* key, F read) const {
    if (Find(key) != nullptr) read();
  }

  template <typename F>
  void In(const char* key, F read) const {
    const Json* value = Find(key);
    if (value != nullptr) read(Fields(*value, fmt::format("{}{}.", where_, key), status_));
  }

  void ReadStrings(const char* key, std::vector<std::string>& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return FailAt(key, "is not a list");
    for (const Json& element : *value) {
      if (!element.is_string()) return FailAt(key, "is not a list of strings");
      out.push_back(element.get<std::string>());
    }
  }

 private:
  const Json* Find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  void Fail(std::string_view what) const {
    if (status_.ok()) status_ = InvalidError("\"{}\" {}", where_, what);
  }
  void FailAt(const char* key, std::string_view what) const {
    if (status_.ok()) status_ = InvalidError("\"{}{}\" {}", where_, key, what);
  }

  const Json& object_;
  std::string where_;  // "" or "domains[2]."
  absl::Status& status_;
};

Json DomainToJson(const DomainInfo& domain) {
  return {{"id", domain.id.value},
          {"name", domain.name},
          {"type", Word(kTypes, domain.type)},
          {"role", Word(kRoles, domain.role)},
          {"vcpus", domain.vcpus},
          {"died", domain.died},
          {"changes_left_out", domain.changes_left_out}};
}

DomainInfo ReadDomain(const Fields& fields) {
  DomainInfo domain;
  fields.Read("id", domain.id.value);
  fields.Read("name", domain.name);
  fields.Read("type", kTypes, domain.type);
  fields.Read("role", kRoles, domain.role);
  fields.Read("vcpus", domain.vcpus);
  fields.Read("died", domain.died);
  fields.Read("changes_left_out", domain.changes_left_out);
  return domain;
}

Json ChangeToJson(const DomainChange& change) {
  Json json = {{"kind", Word(kChanges, change.kind)}, {"domain", change.domain.value}};
  if (change.vcpu) json["vcpu"] = change.vcpu->value;
  json["begin_tsc"] = change.when.begin.value;
  json["end_tsc"] = change.when.end.value;
  return json;
}

DomainChange ReadChange(const Fields& fields) {
  DomainChange change;
  fields.Read("kind", kChanges, change.kind);
  fields.Read("domain", change.domain.value);
  fields.IfPresent("vcpu", [&] { fields.Read("vcpu", change.vcpu.emplace().value); });
  fields.Read("begin_tsc", change.when.begin.value);
  fields.Read("end_tsc", change.when.end.value);
  return change;
}

constexpr std::array<std::pair<bool ModeSet::*, const char*>, 3> kModes{
    {{&ModeSet::user, "user"}, {&ModeSet::kernel, "kernel"}, {&ModeSet::xen, "xen"}}};

Json EventToJson(const EventInfo& event) {
  Json json = {{"name", event.name},
               {"code", event.code},
               {"unit_mask", event.unit_mask},
               {"period", event.period},
               {"clocked_by", event.clocked_by},
               {"waiting", event.waiting}};
  if (event.modes) {
    json["modes"] = Json::array();
    for (const auto& [mode, word] : kModes) {
      if ((*event.modes).*mode) json["modes"].push_back(word);
    }
  }
  if (!event.source.empty()) json["source"] = event.source;
  if (event.nmis) {
    json["nmis"] = {{"sent", event.nmis->sent},
                    {"logged", event.nmis->logged},
                    {"lost", event.nmis->lost},
                    {"elsewhere", event.nmis->elsewhere}};
  }
  return json;
}

EventInfo ReadEvent(const Fields& fields) {
  EventInfo event;
  fields.Read("name", event.name);
  fields.Read("code", event.code);
  fields.Read("unit_mask", event.unit_mask);
  fields.Read("period", event.period);
  fields.Read("clocked_by", event.clocked_by);
  fields.Read("waiting", event.waiting);
  fields.Read("source", event.source);
  fields.IfPresent("modes", [&] {
    std::vector<std::string> words;
    fields.ReadStrings("modes", words);
    ModeSet& modes = event.modes.emplace();
    for (const auto& [mode, word] : kModes) modes.*mode = std::ranges::count(words, word) > 0;
  });
  fields.In("nmis", [&event](const Fields& nmis) {
    NmiCounters& counters = event.nmis.emplace();
    nmis.Read("sent", counters.sent);
    nmis.Read("logged", counters.logged);
    nmis.Read("lost", counters.lost);
    nmis.Read("elsewhere", counters.elsewhere);
  });
  return event;
}

Json PollsToJson(const PollCounters& polls) {
  return {{"total", polls.total},
          {"blocked", polls.blocked},
          {"running", polls.running},
          {"preempted", polls.preempted},
          {"failed", polls.failed},
          {"stopped_cycles", polls.stopped_cycles},
          {"longest_stop", polls.longest_stop},
          {"callers", polls.callers},
          {"cut_chains", polls.cut_chains},
          {"gone", polls.gone}};
}

PollCounters ReadPolls(const Fields& fields) {
  PollCounters polls;
  fields.Read("total", polls.total);
  fields.Read("blocked", polls.blocked);
  fields.Read("running", polls.running);
  fields.Read("preempted", polls.preempted);
  fields.Read("failed", polls.failed);
  fields.Read("stopped_cycles", polls.stopped_cycles);
  fields.Read("longest_stop", polls.longest_stop);
  fields.Read("callers", polls.callers);
  fields.Read("cut_chains", polls.cut_chains);
  fields.Read("gone", polls.gone);
  return polls;
}

Json StreamToJson(const StreamInfo& stream) {
  Json json = {{"source", stream.source},
               {"domain", stream.vcpu.domain.value},
               {"vcpu", stream.vcpu.vcpu.value},
               {"logged",
                {{"xen", stream.logged.xen},
                 {"kernel", stream.logged.kernel},
                 {"user", stream.logged.user},
                 {"lost", stream.logged.lost}}},
               {"drained", stream.drained},
               {"kept", stream.kept},
               {"other_counters", stream.other_counters},
               {"other_modes", stream.other_modes},
               {"escapes", stream.escapes},
               {"callers", stream.callers},
               {"invalid", stream.invalid},
               {"complete", stream.complete},
               {"balanced", stream.Balanced()}};
  if (stream.polls) json["looks"] = PollsToJson(*stream.polls);
  if (stream.ring) {
    json["ring"] = {{"throttled", stream.ring->throttled},
                    {"unthrottled", stream.ring->unthrottled},
                    {"damaged", stream.ring->damaged}};
  }
  return json;
}

StreamInfo ReadStream(const Fields& fields) {
  StreamInfo stream;
  fields.Read("source", stream.source);
  fields.Read("domain", stream.vcpu.domain.value);
  fields.Read("vcpu", stream.vcpu.vcpu.value);
  fields.In("logged", [&stream](const Fields& logged) {
    logged.Read("xen", stream.logged.xen);
    logged.Read("kernel", stream.logged.kernel);
    logged.Read("user", stream.logged.user);
    logged.Read("lost", stream.logged.lost);
  });
  fields.Read("drained", stream.drained);
  fields.Read("kept", stream.kept);
  fields.Read("other_counters", stream.other_counters);
  fields.Read("other_modes", stream.other_modes);
  fields.Read("escapes", stream.escapes);
  fields.Read("callers", stream.callers);
  fields.Read("invalid", stream.invalid);
  fields.Read("complete", stream.complete);
  fields.In("looks", [&stream](const Fields& polls) { stream.polls = ReadPolls(polls); });
  fields.In("ring", [&stream](const Fields& ring) {
    RingCounters& counters = stream.ring.emplace();
    ring.Read("throttled", counters.throttled);
    ring.Read("unthrottled", counters.unthrottled);
    ring.Read("damaged", counters.damaged);
  });
  return stream;
}

Json SymbolFileToJson(const SymbolFile& file) {
  Json json = {{"kind", Word(kKinds, file.kind)}, {"path", file.path}, {"original", file.original}};
  if (file.kind != SymbolFile::Kind::kXensyms) json["domain"] = file.domain.value;
  return json;
}

SymbolFile ReadSymbolFile(const Fields& fields) {
  SymbolFile file;
  fields.Read("kind", kKinds, file.kind);
  if (file.kind != SymbolFile::Kind::kXensyms) fields.Read("domain", file.domain.value);
  fields.Read("path", file.path);
  fields.Read("original", file.original);
  return file;
}

void ReadHeader(const Fields& root, RecordingInfo& info) {
  root.Read("written_by", info.written_by);
  root.In("format", [&info](const Fields& format) {
    format.Read("major", info.format.major);
    format.Read("minor", info.format.minor);
  });
}

void ReadBody(const Fields& root, RecordingInfo& info) {
  root.Read("state", kStates, info.state);
  root.ReadStrings("command", info.command);
  root.Read("stopped_because", info.stopped_because);
  root.In("xen", [&info](const Fields& xen) {
    xen.Read("version", info.xen.version);
    xen.Read("build_id", info.xen.build_id);
    xen.Read("command_line", info.xen.command_line);
  });
  root.In("host", [&info](const Fields& host) {
    host.Read("name", info.host.name);
    host.Read("clock_hz", info.host.clock_hz);
    host.Read("pcpus", info.host.pcpus);
    host.Read("vendor", kVendors, info.host.vendor);
    host.Read("kernel", info.host.kernel);
  });
  root.Read("started_tsc", info.started.value);
  root.In("wall_clock", [&info](const Fields& f) {
    WallClock& clock = info.wall_clock.emplace();
    f.Read("utc_ns", clock.utc_ns);
    f.Read("error_ns", clock.error_ns);
  });
  root.In("boost", [&info](const Fields& f) {
    BoostInfo& boost = info.boost.emplace();
    f.Read("before", boost.before);
    f.Read("raised", boost.raised);
  });
  root.Read("stopped_tsc", info.stopped.value);
  root.Read("own_cpu_ns", info.own_cpu_ns);
  root.ForEach("domains", [&info](const Fields& f) { info.domains.push_back(ReadDomain(f)); });
  root.ForEach("changes", [&info](const Fields& f) { info.changes.push_back(ReadChange(f)); });
  root.ForEach("sources", [&info](const Fields& f) {
    SourceInfo& source = info.sources.emplace_back();
    f.Read("name", source.name);
    f.Read("cpu_type", source.cpu_type);
    f.Read("drain_interval_ns", source.drain_interval_ns);
    f.Read("seed", source.seed);
    f.ReadStrings("problems", source.problems);
    f.In("stacks", [&source](const Fields& fields) {
      StackInfo& stacks = source.stacks.emplace();
      fields.Read("piece_bytes", stacks.piece_bytes);
      fields.Read("pieces", stacks.pieces);
      fields.Read("raw_bytes", stacks.raw_bytes);
      fields.Read("stored_bytes", stacks.stored_bytes);
      fields.Read("left_out", stacks.left_out);
    });
    f.In("drains", [&source](const Fields& drains) {
      drains.Read("count", source.drains.count);
      drains.Read("p50_ns", source.drains.p50_ns);
      drains.Read("p99_ns", source.drains.p99_ns);
      drains.Read("most_ns", source.drains.most_ns);
      drains.Read("held_ns", source.drains.held_ns);
      drains.Read("most_waiting_bytes", source.drains.most_waiting_bytes);
    });
  });
  root.ForEach("events", [&info](const Fields& f) { info.events.push_back(ReadEvent(f)); });
  root.ForEach("streams", [&info](const Fields& f) { info.streams.push_back(ReadStream(f)); });
  root.ForEach("kernel_traces", [&info](const Fields& f) {
    KernelTraceInfo& trace = info.kernel_traces.emplace_back();
    f.Read("source", trace.source);
    f.Read("domain", trace.vcpu.domain.value);
    f.Read("vcpu", trace.vcpu.vcpu.value);
    f.Read("read", trace.read);
    f.Read("lost", trace.lost);
  });
  root.In("trace", [&info](const Fields& f) {
    TraceInfo& trace = info.trace.emplace();
    f.Read("events", trace.events);
    f.IfPresent("event_mask", [&] { f.Read("event_mask", trace.event_mask.emplace()); });
    f.Read("buffer_pages", trace.buffer_pages);
    f.Read("asked_pages", trace.asked_pages);
    f.Read("lost_records", trace.lost_records);
    f.Read("lost_cycles", trace.lost_cycles);
  });
  root.ForEach("symbols", [&info](const Fields& f) { info.symbols.push_back(ReadSymbolFile(f)); });
}

absl::StatusOr<Json> ParseJson(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return InvalidError("not JSON at byte {}", error.byte);
  } catch (const Json::exception&) {  // numbers beyond what a double holds
    return InvalidError("holds a number that is out of range");
  }
}

Json KernelTraceToJson(const KernelTraceInfo& trace) {
  return {{"source", trace.source},
          {"domain", trace.vcpu.domain.value},
          {"vcpu", trace.vcpu.vcpu.value},
          {"read", trace.read},
          {"lost", trace.lost}};
}

template <typename T>
Json ListToJson(const std::vector<T>& list, Json (*to_json)(const T&)) {
  Json json = Json::array();
  for (const T& element : list) json.push_back(to_json(element));
  return json;
}

}  // namespace

std::string ToJson(const RecordingInfo& info) {
  Json json;
  json["format"] = {{"major", info.format.major}, {"minor", info.format.minor}};
  json["written_by"] = info.written_by;
  json["state"] = Word(kStates, info.state);
  json["command"] = info.command;
  json["stopped_because"] = info.stopped_because;
  json["xen"] = {{"version", info.xen.version},
                 {"build_id", info.xen.build_id},
                 {"command_line", info.xen.command_line}};
  json["host"] = {{"name", info.host.name},
                  {"clock_hz", info.host.clock_hz},
                  {"pcpus", info.host.pcpus},
                  {"vendor", Word(kVendors, info.host.vendor)},
                  {"kernel", info.host.kernel}};
  json["started_tsc"] = info.started.value;
  json["stopped_tsc"] = info.stopped.value;
  if (info.wall_clock) {
    json["wall_clock"] = {{"utc_ns", info.wall_clock->utc_ns},
                          {"error_ns", info.wall_clock->error_ns}};
  }
  if (info.boost) json["boost"] = {{"before", info.boost->before}, {"raised", info.boost->raised}};
  json["own_cpu_ns"] = info.own_cpu_ns;
  json["domains"] = ListToJson(info.domains, DomainToJson);
  json["sources"] = Json::array();
  for (const SourceInfo& source : info.sources) {
    json["sources"].push_back({{"name", source.name},
                               {"cpu_type", source.cpu_type},
                               {"drain_interval_ns", source.drain_interval_ns},
                               {"seed", source.seed},
                               {"problems", source.problems},
                               {"drains",
                                {{"count", source.drains.count},
                                 {"p50_ns", source.drains.p50_ns},
                                 {"p99_ns", source.drains.p99_ns},
                                 {"most_ns", source.drains.most_ns},
                                 {"held_ns", source.drains.held_ns},
                                 {"most_waiting_bytes", source.drains.most_waiting_bytes}}}});
    if (!source.stacks) continue;
    json["sources"].back()["stacks"] = {{"piece_bytes", source.stacks->piece_bytes},
                                        {"pieces", source.stacks->pieces},
                                        {"raw_bytes", source.stacks->raw_bytes},
                                        {"stored_bytes", source.stacks->stored_bytes},
                                        {"left_out", source.stacks->left_out}};
  }
  json["events"] = ListToJson(info.events, EventToJson);
  json["streams"] = ListToJson(info.streams, StreamToJson);
  json["kernel_traces"] = ListToJson(info.kernel_traces, KernelTraceToJson);
  if (info.trace) {
    json["trace"] = {{"events", info.trace->events},
                     {"buffer_pages", info.trace->buffer_pages},
                     {"asked_pages", info.trace->asked_pages},
                     {"lost_records", info.trace->lost_records},
                     {"lost_cycles", info.trace->lost_cycles}};
    if (info.trace->event_mask) json["trace"]["event_mask"] = *info.trace->event_mask;
  }
  json["symbols"] = ListToJson(info.symbols, SymbolFileToJson);
  return JsonText(json, 2) + "\n";
}

absl::StatusOr<RecordingInfo> FromJson(std::string_view text) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  absl::Status status;
  RecordingInfo info;
  const Fields root(json, "", status);
  info.format = {0, 0};
  ReadHeader(root, info);
  XENOSCOPE_RETURN_IF_ERROR(status);
  if (info.format.major == 0) return InvalidError("\"format.major\" is missing");
  if (info.format.major > kFormat.major) {
    return InvalidError(
        "the recording has format {}.{} (written by {}) and this xenoscope reads up to {}.x: use a "
        "newer xenoscope",
        info.format.major, info.format.minor,
        info.written_by.empty() ? "an unknown version" : info.written_by, kFormat.major);
  }
  ReadBody(root, info);
  XENOSCOPE_RETURN_IF_ERROR(status);
  return info;
}

std::string ToJsonLine(const DomainChange& change) { return JsonText(ChangeToJson(change)); }

absl::StatusOr<DomainChange> ChangeFromJson(std::string_view line) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Json json, ParseJson(line));
  absl::Status status;
  const DomainChange change = ReadChange(Fields(json, "", status));
  XENOSCOPE_RETURN_IF_ERROR(status);
  return change;
}

}  // namespace xenoscope::recording
