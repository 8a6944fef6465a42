#include "sampler/agent_source.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "recording/writer.h"

namespace xenoscope::sampler {
namespace {

using agent::FileKind;
using agent::GuestSource;
using agent::Session;
using recording::EventInfo;
using recording::Sample;
using recording::SymbolFile;
using std::chrono::steady_clock;

constexpr auto kStep = std::chrono::milliseconds(20);

std::string NameOf(const recording::DomainInfo& domain) {
  return DomainLabel(domain.id, domain.name);
}

void Add(recording::ProcessChunk& chunk, const recording::ProcessRecord& record) {
  using recording::MapEntry;
  recording::ProcessEntry entry;
  entry.type = static_cast<uint8_t>(record.type);
  entry.flags = static_cast<uint8_t>((record.by_exec ? recording::kByExec : 0) |
                                     (record.at_start ? recording::kAtStart : 0));
  entry.pid = record.pid;
  entry.tid = record.tid;
  entry.parent = record.parent;
  entry.when = record.when.value;
  MapEntry map;
  map.address = record.map.begin;
  map.length = record.map.end - record.map.begin;
  map.offset = record.map.offset;
  map.build_id_size =
      static_cast<uint8_t>(std::min(record.map.build_id.size(), map.build_id.size()));
  std::memcpy(map.build_id.data(), record.map.build_id.data(), map.build_id_size);
  chunk.Add(entry, record.type == recording::ProcessEntryType::kMap ? &map : nullptr, record.text);
}

// What to ask an agent for, one after the other until it can: xenoprof is for PV domains only, and
// what dom0 counts, a guest without counters cannot.
std::vector<agent::Prepare> Ways(const agent::Prepare& wanted) {
  std::vector<agent::Prepare> ways = {wanted};
  agent::Prepare way = wanted;
  way.source = GuestSource::kPerf;
  if (way != wanted) ways.push_back(way);
  way.events.clear();
  if (way != ways.back()) ways.push_back(way);
  return ways;
}

// `note` is what it could not be asked for, if it samples something else.
absl::StatusOr<std::unique_ptr<Session>> OpenSession(const recording::DomainInfo& domain,
                                                     const AgentRequest& request,
                                                     const AgentSource::Connect& connect,
                                                     const std::function<Tsc()>& read_tsc,
                                                     std::string& note) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Channel> channel, connect(domain.id));
  XENOSCOPE_ASSIGN_OR_RETURN(
      std::unique_ptr<Session> session,
      Session::Open(domain, std::move(channel), request.clock_hz, read_tsc, request.limits));
  for (const agent::Prepare& how : Ways(request.how)) {
    const absl::Status ready = session->Prepare(how);
    if (ready.ok()) return session;
    if (!absl::IsUnimplemented(ready)) return ready;
    if (note.empty()) note = Message(ready);
  }
  return UnimplementedError("{}", note);
}

}  // namespace

AgentSource::Opened AgentSource::Open(const AgentRequest& request, const Connect& connect,
                                      const std::function<Tsc()>& read_tsc) {
  Opened opened;
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  opened.source.reset(new AgentSource(read_tsc));
  for (const recording::DomainInfo& domain : request.domains) {
    std::string note;
    absl::StatusOr<std::unique_ptr<Session>> session =
        OpenSession(domain, request, connect, read_tsc, note);
    if (session.ok()) {
      if (!note.empty()) {
        opened.source->notes_.push_back(fmt::format("{}: {}; it samples {} instead", NameOf(domain),
                                                    note, (*session)->events().front().name));
      }
      opened.source->Take(*std::move(session), request.how);
    } else {
      opened.silent.emplace_back(domain.id, session.status());
    }
  }
  if (opened.source->guests_.empty()) opened.source.reset();
  return opened;
}

void AgentSource::Take(std::unique_ptr<Session> session, const agent::Prepare& how) {
  Guest& guest = guests_.emplace_back();
  // Its events are the ones that dom0 programs, as many.
  guest.is_member = how.source == GuestSource::kXenoprof &&
                    session->source() == GuestSource::kXenoprof &&
                    session->events().size() == std::max<size_t>(how.events.size(), 1);
  for (const EventInfo& event : session->events()) {
    if (guest.is_member) break;
    auto known = std::ranges::find(events_, event);
    if (known == events_.end()) known = events_.insert(events_.end(), event);
    guest.events.push_back(static_cast<uint8_t>(known - events_.begin()));
  }
  guest.session = std::move(session);
}

std::vector<DomainId> AgentSource::Members() const {
  std::vector<DomainId> members;
  for (const Guest& guest : guests_) {
    if (guest.is_member) members.push_back(guest.session->domain().id);
  }
  return members;
}

absl::StatusOr<bool> AgentSource::EnlistMember(DomainId member) {
  for (Guest& guest : guests_) {
    if (guest.session->domain().id == member) return guest.session->Enlist();
  }
  return NotFoundError("it has no agent");
}

void AgentSource::Dismiss(DomainId domain) {
  std::erase_if(guests_, [domain](Guest& guest) {
    if (guest.session->domain().id != domain) return false;
    guest.session->Bye();
    return true;
  });
}

recording::SourceInfo AgentSource::Info() const {
  recording::SourceInfo info;
  info.name = "agent";
  info.drain_interval_ns = static_cast<uint64_t>(std::chrono::nanoseconds(kStep).count());
  return info;
}

std::vector<EventInfo> AgentSource::Events() const { return events_; }

recording::Role AgentSource::RoleOf(DomainId domain) const {
  const bool active = std::ranges::any_of(
      guests_, [domain](const Guest& guest) { return guest.session->domain().id == domain; });
  return active ? recording::Role::kActive : recording::Role::kNone;
}

std::vector<std::string> AgentSource::Notes() const {
  std::vector<std::string> notes = notes_;
  for (const Guest& guest : guests_) {
    const Session& session = *guest.session;
    const auto error = session.clock().Error();
    notes.push_back(fmt::format(
        "{} is active: its agent ({}, Linux {}) {}; {}", NameOf(session.domain()),
        session.hello().program, session.hello().kernel,
        guest.is_member ? "takes part in xenoprof" : "samples it",
        error ? fmt::format("its clock is known to {} cycles", *error)
              : std::string("its clock runs at another rate than the host's, so that its samples' "
                            "times are known to fractions of a second only")));
  }
  return notes;
}

absl::Status AgentSource::Start() {
  sampled_.begin = read_tsc_();
  for (Guest& guest : guests_) {
    guest.session->Start(
        {.sample = [this, &guest](const Sample& sample) { Hold(guest, sample); },
         .process =
             [&guest](const recording::ProcessRecord& record) { Add(guest.processes, record); }});
  }
  due_ = steady_clock::now();
  return absl::OkStatus();
}

void AgentSource::Hold(const Guest& guest, const Sample& sample) {
  Held& held = held_.emplace_back();
  held.domain = sample.vcpu.domain;
  recording::TimedEntry& entry = held.entry;
  entry.address = sample.address;
  entry.mode = static_cast<uint8_t>(sample.mode);
  entry.event = guest.is_member ? static_cast<uint8_t>(sample.event)
                                : static_cast<uint8_t>(first_event_ + guest.events[sample.event]);
  entry.vcpu = sample.vcpu.vcpu.value;
  if (sample.thread) {
    entry.pid = sample.thread->pid;
    entry.tid = sample.thread->tid;
  }
  entry.begin = sample.when.begin.value;
  entry.end = sample.when.end.value;
  for (size_t i = 0; i < sample.callers.size(); ++i) {
    held.callers.push_back(sample.callers.at(i));
    // perf in a guest has none in Xen, whatever it says.
    const Mode mode = sample.callers.ModeAt(i);
    if (mode == Mode::kXen && guest.is_member) {
      ++entry.xen_callers;
    } else {
      ++(mode == Mode::kUser ? entry.user_callers : entry.kernel_callers);
    }
  }
}

void AgentSource::Step() {
  for (Guest& guest : guests_) {
    guest.session->Step();
    if (guest.session->status().ok() || guest.told) continue;
    guest.told = true;
    afterwards_.push_back(
        fmt::format("{}: its agent was given up, its samples are kept up to there: {}",
                    NameOf(guest.session->domain()), Message(guest.session->status())));
  }
  due_ = steady_clock::now() + kStep;
}

absl::Status AgentSource::Collect(recording::SampleWriter& writer) {
  Step();
  // Readers take each source's samples in the order of time: those of one guest wait until the
  // others have answered, too.
  Tsc until = read_tsc_();
  for (const Guest& guest : guests_) {
    if (guest.session->status().ok()) until = std::min(until, guest.session->Delivered());
  }
  Write(until, writer);
  return absl::OkStatus();
}

void AgentSource::Write(Tsc until, recording::SampleWriter& writer) {
  for (Guest& guest : guests_) {
    if (guest.processes.empty()) continue;
    writer.Append(guest.session->domain().id, guest.processes);
    guest.processes.Clear();
  }
  const auto later = std::stable_partition(held_.begin(), held_.end(), [until](const Held& held) {
    return held.entry.end <= until.value;
  });
  std::stable_sort(held_.begin(), later,
                   [](const Held& a, const Held& b) { return a.entry.end < b.entry.end; });
  recording::TimedChunk chunk;
  for (auto held = held_.begin(); held != later; ++held) {
    chunk.Add(held->entry, held->callers);
    if (held + 1 != later && (held + 1)->domain == held->domain) continue;
    writer.Append(held->domain, chunk);
    chunk.Clear();
  }
  held_.erase(held_.begin(), later);
}

absl::Status AgentSource::Welcome(const recording::DomainInfo& /*domain*/) {
  return UnimplementedError("agents are asked only before sampling starts");
}

void AgentSource::Farewell(DomainId domain) {
  for (Guest& guest : guests_) {
    if (guest.session->domain().id == domain) {
      guest.session->GiveUp(absl::UnavailableError("its domain has gone"));
    }
  }
}

void AgentSource::StopGuest(Guest& guest) {
  if (!guest.stopped) guest.session->Stop();
  guest.stopped = true;
}

absl::Status AgentSource::Stop(recording::SampleWriter& writer) {
  for (Guest& guest : guests_) {
    StopGuest(guest);
    for (size_t i = 0; i < guest.events.size(); ++i) {  // with the periods that there really were
      events_[guest.events[i]].period = guest.session->events()[i].period;
    }
  }
  sampled_.end = read_tsc_();
  Step();
  Write(Tsc{std::numeric_limits<uint64_t>::max()}, writer);
  return absl::OkStatus();
}

// A file that cannot be had leaves addresses without names.
absl::Status AgentSource::Save(const recording::Writer& writer, recording::RecordingInfo& info) {
  struct Wanted {
    FileKind file;
    SymbolFile::Kind kind;
    uint16_t since;  // minor version of the agent
    const char* what;
  };
  constexpr Wanted kFiles[] = {
      {FileKind::kKallsyms, SymbolFile::Kind::kKallsyms, 0, "its kernel's symbols"},
      {FileKind::kModules, SymbolFile::Kind::kModules, 0, "its kernel's symbols"},
      {FileKind::kVdso, SymbolFile::Kind::kVdso, 2, "its vDSO"},
      {FileKind::kPerfMaps, SymbolFile::Kind::kPerfMaps, 2, "what its compilers made"}};
  for (Guest& guest : guests_) {
    const recording::DomainInfo& domain = guest.session->domain();
    for (const Wanted& wanted : kFiles) {
      const bool given = std::ranges::any_of(info.symbols, [&](const SymbolFile& symbols) {
        return symbols.domain == domain.id && symbols.kind == wanted.kind;
      });
      if (given || !guest.session->status().ok()) continue;  // the user's own goes before
      if (guest.session->hello().minor < wanted.since) continue;
      const auto content = guest.session->Fetch(wanted.file);
      if (!content.ok()) {
        afterwards_.push_back(
            fmt::format("{}: {}: {}", NameOf(domain), wanted.what, Message(content.status())));
        continue;
      }
      if (content->empty()) continue;  // there is none
      XENOSCOPE_ASSIGN_OR_RETURN(
          SymbolFile added,
          writer.AddSymbolContent(wanted.kind, domain.id, *content, NameOf(domain) + "'s agent"));
      info.symbols.push_back(std::move(added));
    }
  }
  return absl::OkStatus();
}

absl::Status AgentSource::Close() {
  for (Guest& guest : guests_) {
    // A member that never started holds Xen's buffers all the same.
    if (guest.is_member) StopGuest(guest);
    guest.session->Bye();
    for (const std::string& complaint : guest.session->complaints()) {
      afterwards_.push_back(
          fmt::format("{}: its agent says: {}", NameOf(guest.session->domain()), complaint));
    }
    const agent::Refused& refused = guest.session->refused();
    if (refused.damaged + refused.mistimed + refused.processes > 0) {
      afterwards_.push_back(fmt::format(
          "{}: of its agent's samples {} were refused as damaged, {} as not taken while it was to "
          "sample; {} entries about processes were damaged",
          NameOf(guest.session->domain()), refused.damaged, refused.mistimed, refused.processes));
    }
    if (guest.session->clock().jumps() > 0) {
      afterwards_.push_back(fmt::format("{}: its clock jumped {} times",
                                        NameOf(guest.session->domain()),
                                        guest.session->clock().jumps()));
    }
  }
  return absl::OkStatus();
}

std::vector<recording::StreamInfo> AgentSource::Streams() const {
  std::vector<recording::StreamInfo> streams;
  for (const Guest& guest : guests_) {
    std::ranges::move(guest.session->Streams(), std::back_inserter(streams));
  }
  return streams;
}

std::vector<std::string> AgentSource::Afterwards() const { return afterwards_; }

}  // namespace xenoscope::sampler
