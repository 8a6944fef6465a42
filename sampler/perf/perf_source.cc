#include "sampler/perf/perf_source.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/xen_address.h"
#include "recording/writer.h"
#include "sampler/build_ids.h"
#include "sampler/perf/jit_and_vdso.h"
#include "sampler/pmu_events.h"

namespace xenoscope::sampler {
namespace {

using recording::MapEntry;
using recording::ProcessEntry;
using recording::ProcessEntryType;
using recording::StreamInfo;
using recording::SymbolFile;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// The interval between changes of periods. The first sample of a new period never comes at once, so
// frequent changes would spare code that runs after a change.
constexpr nanoseconds kRandomizeInterval = std::chrono::milliseconds(100);
// The interval between looks for CPUs that come online.
constexpr nanoseconds kCpuPollInterval = std::chrono::seconds(1);
// The period is divided by a factor between 1 - jitter and 1 + jitter, so that the mean rate is
// that of the period.
constexpr double kJitter = 0.25;
// Where Xen's vPMU holds a sample until dom0 runs, the next one comes a period later: unless that
// differs by more than a timeslice, the same domain runs then.
constexpr double kJitterOfVpmuOfAll = 0.75;
// Tries to mark the time: this thread may be preempted between its two readings of the TSC.
constexpr int kMarks = 3;
// Limits of the number of files whose build-ids are not known, and of the time in which their ids
// are read when recording ends, which an agent's recorder waits for.
constexpr size_t kMaxFilesWithoutId = 10'000;
constexpr nanoseconds kMaxTimeForFileIds = std::chrono::seconds(3);

template <typename... F>
struct Overload : F... {
  using F::operator()...;
};
template <typename... F>
Overload(F...) -> Overload<F...>;

perf_event_attr RingAttributes() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.build_id = 1;
  attributes.comm = 1;
  attributes.comm_exec = 1;
  attributes.task = 1;
  return attributes;
}

bool IsOfHardware(const perf_event_attr& attributes) {
  return attributes.type != PERF_TYPE_SOFTWARE;
}

// Sets the attributes that all events of a ring must share.
void SetCommon(perf_event_attr& attributes) {
  attributes.size = sizeof attributes;
  attributes.sample_type |= kPerfSampleType;
  attributes.sample_id_all = 1;
  attributes.disabled = 1;
}

// Cycles and instructions of a group have a fixed period, unless the user gives one: Linux varies
// the period of an event with a rate, and a period that depends on what runs would bias ratios.
void SetPeriodOfGroup(uint64_t clock_hz, EventSpec& spec) {
  const bool is_clocklike =
      spec.name == "cycles" || spec.name == "cpu-cycles" || spec.name == "instructions";
  if (!spec.group || spec.period || spec.hz || !is_clocklike || clock_hz == 0) return;
  spec.period = DefaultEvent("", clock_hz).period;
}

constexpr const char* kPerfMapName = "/tmp/perf-PID.map";

// Whether code there may be that of a JIT compiler: memory without a file, or a memfd. Paths of
// memory begin with "//" in perf's records, and with "[" in /proc.
bool MayBeCompilers(std::string_view path) {
  const bool is_kernels = path == "[vdso]" || path == "[vsyscall]" || path == "[uprobes]";
  const bool is_file = path.starts_with('/') && !path.starts_with("//");
  return !is_kernels && (!is_file || path.starts_with("/memfd:"));
}

MapEntry MakeMap(uint64_t address, uint64_t length, uint64_t offset, Bytes build_id) {
  MapEntry map;
  map.address = address;
  map.length = length;
  map.offset = offset;
  if (build_id.size() <= map.build_id.size()) {
    map.build_id_size = static_cast<uint8_t>(build_id.size());
    std::ranges::transform(build_id, map.build_id.begin(),
                           [](std::byte byte) { return std::to_integer<uint8_t>(byte); });
  }
  return map;
}

ProcessEntry MakeEntry(ProcessEntryType type, uint32_t pid, uint32_t tid) {
  ProcessEntry entry;
  entry.type = static_cast<uint8_t>(type);
  entry.pid = pid;
  entry.tid = tid;
  return entry;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PerfSource>> PerfSource::Open(
    const PerfRequest& request, std::unique_ptr<PerfCalls> calls,
    std::function<std::vector<RunningProcess>()> running, std::shared_ptr<PerfMapWatch> perf_maps) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<PerfSource> source(
      new PerfSource(request, std::move(calls), std::move(running), std::move(perf_maps)));
  XENOSCOPE_RETURN_IF_ERROR(source->OpenAll());
  return source;
}

PerfSource::PerfSource(const PerfRequest& request, std::unique_ptr<PerfCalls> calls,
                       std::function<std::vector<RunningProcess>()> running,
                       std::shared_ptr<PerfMapWatch> perf_maps)
    : request_(request),
      calls_(std::move(calls)),
      running_(std::move(running)),
      perf_maps_(std::move(perf_maps)),
      chunk_(request.domain, {.piece_bytes = request.stack_bytes,
                              .bytes_per_second = request.stack_bytes_per_second,
                              .bytes = request.all_stack_bytes}),
      random_(request.seed),
      drain_timer_(request.drain_interval) {}

PerfSource::~PerfSource() { Close().IgnoreError(); }

absl::Status PerfSource::OpenAll() {
  for (size_t i = 0; i < request_.events.size(); ++i) {
    EventSpec spec = request_.events[i];
    SetPeriodOfGroup(request_.clock_hz, spec);
    XENOSCOPE_ASSIGN_OR_RETURN(PerfEvent event, ResolvePerfEvent(spec));
    const auto first = std::ranges::find(request_.events, spec.group, &EventSpec::group);
    const auto leader = static_cast<size_t>(first - request_.events.begin());
    events_.push_back({std::move(event)});
    if (spec.group && leader < i) events_.back().leader = leader;
  }
  if (events_.empty()) {
    events_.push_back({DefaultPerfEvent(*calls_)});
    if (events_.front().event.is_timer) {
      notes_.emplace_back(
          "source perf: this machine's performance counters do not count (a virtual machine often "
          "has none), so Linux's timer (cpu-clock) takes the samples. Code with interrupts off "
          "appears at the instruction that enables them again");
    }
  }
  vpmu_ = calls_->VpmuMode();
  for (Event& event : events_) XENOSCOPE_RETURN_IF_ERROR(SetModes(event));
  if (SamplesXen()) {
    notes_.emplace_back(
        vpmu_ == kVpmuAll
            ? "source perf: Xen's vPMU (mode all) samples Xen and all domains. The trace "
              "attributes samples of other domains. Xen keeps one sample of each pCPU, and drops "
              "others until Linux has read it, uncounted"
            : "source perf: Xen's vPMU (mode hv) samples dom0, and Xen's work for it; there are no "
              "samples of the guests");
  }
  const auto by_counter = [](const Event& event) { return IsOfHardware(event.event.attributes); };
  if (std::ranges::any_of(events_, by_counter)) {
    for (const std::string& problem : request_.vpmu_problems) {
      notes_.push_back(fmt::format("source perf: {}", problem));
    }
  }
  if (WithBranches()) {
    most_branches_ = calls_->BranchRecords().value_or(0);
    for (const Event& event : events_) XENOSCOPE_RETURN_IF_ERROR(CheckBranchRecords(event.event));
  }
  const std::vector<uint32_t> online = calls_->OnlineCpus();
  online_cpus_ = std::max<size_t>(online.size(), 1);
  for (const uint32_t cpu : online) XENOSCOPE_RETURN_IF_ERROR(OpenCpu(cpu));
  if (cpus_.empty()) return PreconditionError("Linux says that no CPU is online");
  return absl::OkStatus();
}

absl::Status PerfSource::SetModes(Event& event) {
  ModeSet& modes = event.event.modes;
  perf_event_attr& attributes = event.event.attributes;
  const bool by_rings = IsOfHardware(attributes) && (calls_->IsInPvDomain() || !vpmu_.empty());
  if (!by_rings) {
    // Linux on x86 does not tell a hypervisor's work from that of the code that called it.
    modes.xen = modes.user && modes.kernel;
    return absl::OkStatus();
  }
  if (modes == kAllModes) return absl::OkStatus();
  const bool all_domains = vpmu_ == kVpmuAll;
  if (modes.xen && !all_domains && vpmu_ != kVpmuHv) {
    return InvalidError(
        "event {}:h: Xen's vPMU takes samples of Xen in the modes hv and all only; leave out h, or "
        "write hv to /sys/hypervisor/pmu/pmu_mode",
        event.event.name);
  }
  // In ring 3 are user mode and the kernels of PV domains, in ring 0 Xen and the kernels of HVM
  // guests.
  attributes.exclude_user = modes.user || modes.kernel ? 0 : 1;
  attributes.exclude_kernel = modes.xen || (modes.kernel && all_domains) ? 0 : 1;
  attributes.exclude_hv = 0;
  event.by_rings = true;
  notes_.push_back(fmt::format(
      "source perf: event {}: in PV domains the counters do not tell user and kernel mode apart, "
      "so samples are taken in both, and those of modes that were not requested are left out",
      event.event.name));
  return absl::OkStatus();
}

bool PerfSource::SamplesXen() const {
  return (vpmu_ == kVpmuAll || vpmu_ == kVpmuHv) &&
         std::ranges::any_of(events_, [](const Event& event) {
           return IsOfHardware(event.event.attributes) && event.event.modes.xen;
         });
}

absl::Status PerfSource::OpenCpu(uint32_t number) {
  perf_event_attr attributes = RingAttributes();
  SetCommon(attributes);
  const auto open = [&] {
    return calls_->Open(attributes, /*pid=*/-1, static_cast<int>(number), PerfCalls::kNoLeader);
  };
  int fd = open();
  if (fd == -EINVAL) {  // before Linux 5.12
    attributes.build_id = 0;
    fd = open();
  }
  if (fd == -ENODEV) return absl::OkStatus();  // it has gone offline just now
  if (fd < 0) return PerfError(*calls_, -fd, "dummy");
  int error = 0;
  const PerfMapping mapping = calls_->Map(fd, RingPages(), error);
  if (error != 0) {
    calls_->Close(fd);
    if (error == -EPERM) {
      return PermissionError(
          "Linux does not lock {} KiB of memory for each CPU's ring: record as root, or raise "
          "kernel.perf_event_mlock_kb",
          RingPages() * 4);
    }
    return PerfError(*calls_, -error, "ring");
  }
  auto found =
      std::ranges::find(cpus_, VcpuId{number}, [](const Cpu& cpu) { return cpu.stream.vcpu.vcpu; });
  if (found == cpus_.end()) {
    found = cpus_.insert(found, Cpu{PerfRing(mapping), fd, {}, {}});
    found->stream.source = "perf";
    found->stream.vcpu = {request_.domain, VcpuId{number}};
    found->stream.ring.emplace();
  }
  Cpu& cpu = *found;
  cpu.ring = PerfRing(mapping);
  cpu.ring_fd = fd;
  for (size_t i = 0; i < events_.size(); ++i) {
    XENOSCOPE_RETURN_IF_ERROR(OpenEvent(cpu, number, i));
  }
  return absl::OkStatus();
}

size_t PerfSource::RingPages() const {
  if (request_.ring_pages != 0) return request_.ring_pages;
  constexpr size_t kFewest = 64;
  if (!WithStacks()) return kFewest;
  // Room for some 200 samples, the default rate's between four drains.
  constexpr uint32_t kLargePiece = 16384;
  const size_t needed = request_.stack_bytes <= kLargePiece ? 512 : 1024;
  return std::min(needed,
                  std::max(kFewest, std::bit_floor(request_.most_ring_pages / online_cpus_)));
}

absl::Status PerfSource::CheckBranchRecords(const PerfEvent& event) {
  constexpr const char* kInstead =
      "use --call-graph dwarf, or fp where programs have frame pointers";
  if (!IsOfHardware(event.attributes)) {
    return UnimplementedError(
        "--call-graph lbr: branch records come with the events of a processor's counters, and {} "
        "is Linux's own{}: {}",
        event.name,
        request_.events.empty() ? ", since no counter counts here (a virtual machine often has "
                                  "none)"
                                : "",
        kInstead);
  }
  const auto opens = [this](const perf_event_attr& attributes) {
    const int fd = calls_->Open(attributes, /*pid=*/0, /*cpu=*/-1, PerfCalls::kNoLeader);
    if (fd >= 0) calls_->Close(fd);
    return fd >= 0;
  };
  perf_event_attr attributes = SampledAttributes(event);
  if (opens(attributes)) return absl::OkStatus();
  attributes.sample_type &= ~uint64_t{PERF_SAMPLE_BRANCH_STACK};
  attributes.branch_sample_type = 0;
  if (!opens(attributes)) return absl::OkStatus();  // opening it on a CPU says what is wrong
  return UnimplementedError(
      "--call-graph lbr: this processor, or Linux's driver for it, records no branches by calls "
      "(Intel's do since Haswell, AMD's do not, and virtual machines mostly do not): {}",
      kInstead);
}

perf_event_attr PerfSource::SampledAttributes(const PerfEvent& event) const {
  perf_event_attr attributes = event.attributes;
  if (request_.call_chains) attributes.sample_type |= PERF_SAMPLE_CALLCHAIN;
  if (WithBranches()) {
    attributes.sample_type |= PERF_SAMPLE_BRANCH_STACK;
    attributes.branch_sample_type = kPerfBranchesOfCalls;
  }
  if (WithStacks()) {
    attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = kPerfUserRegisters;
    attributes.sample_stack_user = request_.stack_bytes;
    attributes.exclude_callchain_user = 1;
  }
  SetCommon(attributes);
  return attributes;
}

absl::Status PerfSource::OpenEvent(Cpu& cpu, uint32_t number, size_t event) {
  const PerfEvent& wanted = events_[event].event;
  perf_event_attr attributes = SampledAttributes(wanted);
  attributes.read_format = PERF_FORMAT_LOST;
  const std::optional<size_t> leader = events_[event].leader;
  const auto open = [&] {
    return calls_->Open(attributes, /*pid=*/-1, static_cast<int>(number),
                        leader ? cpu.fds[*leader] : PerfCalls::kNoLeader);
  };
  int fd = open();
  if (fd == -EINVAL) {  // before Linux 6.0
    attributes.read_format = 0;
    fd = open();
  }
  if (fd < 0) return PerfError(*calls_, -fd, wanted.name.c_str());
  cpu.fds.push_back(fd);
  uint64_t id = 0;
  if (const int error = calls_->RedirectTo(fd, cpu.ring_fd); error < 0) {
    return PerfError(*calls_, -error, wanted.name.c_str());
  }
  if (const int error = calls_->Id(fd, id); error < 0) {
    return PerfError(*calls_, -error, wanted.name.c_str());
  }
  event_of_id_[id] = event;
  return absl::OkStatus();
}

recording::SourceInfo PerfSource::Info() const {
  recording::SourceInfo info;
  info.name = "perf";
  info.drain_interval_ns = static_cast<uint64_t>(request_.drain_interval.count());
  info.seed = request_.jitter ? request_.seed : 0;
  if (!vpmu_.empty() && vpmu_ != kVpmuOff)
    info.cpu_type = fmt::format("{}{}", recording::kVpmu, vpmu_);
  if (WithStacks()) info.stacks = chunk_.info();
  return info;
}

std::vector<recording::EventInfo> PerfSource::Events() const {
  std::vector<recording::EventInfo> infos;
  for (const Event& event : events_) {
    const perf_event_attr& attributes = event.event.attributes;
    recording::EventInfo info;
    info.name = event.event.name;
    info.code = static_cast<uint32_t>(attributes.config & 0xff);
    info.unit_mask = static_cast<uint32_t>((attributes.config >> 8) & 0xff);
    info.period = attributes.freq != 0 ? 0 : attributes.sample_period;
    if (event.samples > 0) {
      info.period = static_cast<uint64_t>(event.counts / static_cast<double>(event.samples));
    }
    info.modes = event.event.modes;
    info.clocked_by = "pmu";
    if (event.event.is_timer) {
      info.clocked_by =
          fmt::format("cpu-clock:{}", kNanosecondsInSecond / attributes.sample_period);
      const uint64_t hz = request_.clock_hz != 0 ? request_.clock_hz : clock_.Hz();
      info.period = static_cast<uint64_t>(static_cast<double>(info.period) *
                                          static_cast<double>(hz) / kNanosecondsInSecond);
    } else if (attributes.type == PERF_TYPE_SOFTWARE) {
      info.clocked_by = "linux";
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

recording::Role PerfSource::RoleOf(DomainId domain) const {
  if (domain != request_.domain) return recording::Role::kNone;
  return domain == kDom0 ? recording::Role::kInitiator : recording::Role::kActive;
}

absl::Status PerfSource::PrepareStart() {
  for (const Cpu& cpu : cpus_) {
    if (const int error = calls_->Enable(cpu.ring_fd, true); error < 0) {
      return PerfError(*calls_, -error, "dummy");
    }
  }
  // From here on the rings have events of processes.
  ReadRunning();
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status PerfSource::Start() {
  if (!prepared_) XENOSCOPE_RETURN_IF_ERROR(PrepareStart());
  sampled_.begin = calls_->ReadTsc();
  for (const Cpu& cpu : cpus_) XENOSCOPE_RETURN_IF_ERROR(EnableEvents(cpu));
  Drain();
  drain_timer_.Start(steady_clock::now());
  next_randomization_ = steady_clock::now() + kRandomizeInterval;
  next_cpu_poll_ = steady_clock::now() + kCpuPollInterval;
  perf_maps_->Start();
  return absl::OkStatus();
}

absl::Status PerfSource::EnableEvents(const Cpu& cpu) {
  for (size_t i = 0; i < cpu.fds.size(); ++i) {
    if (const int error = calls_->Enable(cpu.fds[i], true); error < 0) {
      return PerfError(*calls_, -error, events_[i].event.name.c_str());
    }
  }
  return absl::OkStatus();
}

// Reads the processes that began before sampling. They are written with the first samples, as Start
// has no writer.
void PerfSource::ReadRunning() {
  const uint64_t now = calls_->ReadTsc().value;
  BuildIds reader;
  absl::flat_hash_map<std::string, std::vector<uint8_t>> build_ids;
  for (const RunningProcess& process : running_()) {
    ProcessEntry name = MakeEntry(ProcessEntryType::kName, process.pid, process.pid);
    name.flags = recording::kAtStart;
    name.when = now;
    running_chunk_.Add(name, nullptr, process.name);
    if (std::optional<ProcessEntry> behalf = BehalfEntry(process.pid, process.name)) {
      behalf->flags = recording::kAtStart;
      behalf->when = now;
      running_chunk_.Add(*behalf, nullptr, "");
    }
    for (const ExecutableMap& map : process.maps) {
      if (MayBeCompilers(map.path)) perf_maps_->Add(process.pid);
      const auto [build_id, is_new] = build_ids.try_emplace(map.path);
      if (is_new) build_id->second = reader.Read(map.path);
      const MapEntry mapped = MakeMap(map.begin, map.end - map.begin, map.offset,
                                      std::as_bytes(std::span(build_id->second)));
      ProcessEntry entry = MakeEntry(ProcessEntryType::kMap, process.pid, process.pid);
      entry.flags = recording::kAtStart;
      entry.when = now;
      if (build_id->second.empty()) entry.parent = NumberOfFileWithoutId(map.path, map.inode);
      running_chunk_.Add(entry, &mapped, map.path);
    }
  }
  std::ranges::copy(reader.notes(), std::back_inserter(final_notes_));
}

double PerfSource::Drain() {
  double fill = 0;
  if (!DrainOnce(fill)) DrainOnce(fill);  // the rings were full; now they are empty
  return fill;
}

bool PerfSource::DrainOnce(double& fill) {
  marks_.clear();
  marks_found_.clear();
  for (int i = 0; i < kMarks; ++i) {
    const Tsc before = calls_->ReadTsc();
    calls_->Mark();
    marks_.push_back({before, calls_->ReadTsc()});
  }
  for (size_t i = 0; i < cpus_.size(); ++i) {
    if (cpus_[i].ring_fd < 0) continue;
    clock_.SetConversion(*cpus_[i].ring.mapping().page);
    const double used = cpus_[i].ring.Drain([this, i](Bytes record) { Take(i, record); });
    fill = std::max(fill, used);
  }
  // When a ring is full, some marks are lost, and it is not known which.
  if (marks_found_.size() != marks_.size()) return false;
  std::ranges::sort(marks_found_);  // this thread may have moved between CPUs
  size_t best = 0;
  for (size_t i = 1; i < marks_.size(); ++i) {
    if (marks_[i].Length() < marks_[best].Length()) best = i;
  }
  clock_.AddPair(marks_found_[best], marks_[best]);
  return true;
}

void PerfSource::Take(size_t cpu, Bytes record) {
  StreamInfo& stream = cpus_[cpu].stream;
  std::visit(Overload{
                 [&](const PerfSample& sample) { AddPending(cpu, sample); },
                 [&](const PerfName& name) {
                   if (name.tid == calls_->OwnTid() && !name.by_exec) {
                     marks_found_.push_back(name.time);
                   } else {
                     AddPending(name);
                   }
                 },
                 [&](const PerfMap& map) { AddPending(map); },
                 [&](const PerfTask& task) { AddPending(task); },
                 [&](const PerfLost& lost) { stream.logged.lost += lost.samples; },
                 [&](const PerfThrottle& throttle) {
                   ++(throttle.on ? stream.ring->throttled : stream.ring->unthrottled);
                 },
                 [](const PerfOther&) {},
                 [&](const PerfInvalid&) { ++stream.ring->damaged; },
             },
             ReadPerfRecord(record, {.chain = request_.call_chains,
                                     .branches = WithBranches(),
                                     .stack = WithStacks()}));
}

void PerfSource::AddPending(size_t cpu, const PerfSample& sample) {
  StreamInfo& stream = cpus_[cpu].stream;
  ++stream.drained;
  // Linux takes Xen's code for its own, in the mode that the interrupted vCPU was in.
  const bool is_xens = !vpmu_.empty() && !sample.of_guest && IsXenAddress(sample.address);
  const Mode mode = is_xens ? Mode::kXen : sample.mode;
  switch (mode) {
    case Mode::kUser:
      ++stream.logged.user;
      break;
    case Mode::kKernel:
      ++stream.logged.kernel;
      break;
    case Mode::kXen:
      ++stream.logged.xen;
      break;
  }
  const auto event = event_of_id_.find(sample.id);
  if (event == event_of_id_.end()) {
    ++stream.invalid;
    return;
  }
  Event& of = events_[event->second];
  ++of.samples;
  of.counts += static_cast<double>(sample.period);
  if (of.by_rings && !of.event.modes.Contains(mode)) {
    ++stream.other_modes;
    return;
  }
  PendingSample pending;
  pending.time = sample.time;
  pending.cpu = cpu;
  pending.callers_at = callers_.size();
  pending.entry.address = sample.address;
  pending.entry.mode = static_cast<uint8_t>(mode);
  pending.entry.event = static_cast<uint8_t>(request_.first_event + event->second);
  pending.domain_unknown = vpmu_ == kVpmuAll && (sample.of_guest || mode == Mode::kXen);
  pending.entry.vcpu = stream.vcpu.vcpu.value;
  pending.entry.pid = pending.domain_unknown ? 0 : sample.pid;
  pending.entry.tid = pending.domain_unknown ? 0 : sample.tid;
  AddCallers(sample, pending.entry);
  pending.callers = callers_.size() - pending.callers_at;
  if (sample.has_user_mode && !pending.domain_unknown) {
    pending.has_stack = true;
    pending.registers_at = registers_.size();
    pending.stack_at = stacks_.size();
    if (sample.registers) {
      registers_.push_back(*sample.registers);
      stacks_.insert(stacks_.end(), sample.stack.begin(), sample.stack.end());
      pending.stack_bytes = sample.stack.size();
    }
  }
  pending_samples_.push_back(pending);
}

void PerfSource::AddCallers(const PerfSample& sample, recording::TimedEntry& entry) {
  const bool in_kernel = sample.mode == Mode::kKernel;
  ForEachCaller(sample.chain, [&](Mode mode, Address address) {
    // In a chain the kernel comes before user mode; kernel frames after that are not callers.
    if (mode == Mode::kKernel && entry.user_callers > 0) return;
    // Frame pointers gave all callers in user mode but the one that entered the kernel.
    const bool entered_kernel = in_kernel && entry.user_callers == 0;
    if (mode == Mode::kUser && WithBranches() && !entered_kernel) return;
    ++(mode == Mode::kKernel ? entry.kernel_callers : entry.user_callers);
    callers_.push_back(address);
  });
  const size_t branches = sample.branches.size() / kBranchBytes;
  if (branches == 0) return;
  ++branch_chains_;
  const auto add = [&](Address address) {
    callers_.push_back(address);
    ++entry.user_callers;
  };
  // Where the kernel's chain does not have it, the last call led to the code that entered it.
  ForEachCallerOfBranches(sample.branches, in_kernel && entry.user_callers == 0, add);
  if (most_branches_ == 0 || branches < most_branches_) return;
  ++full_branches_;
  add(AddressOf(ChainEnd::kBranchesFull));
}

void PerfSource::AddPending(const PerfName& name) {
  ProcessEntry entry = MakeEntry(ProcessEntryType::kName, name.pid, name.tid);
  if (name.by_exec) entry.flags = recording::kByExec;
  pending_processes_.push_back({name.time, entry, std::nullopt, std::string(name.name)});
  if (name.pid != name.tid) return;
  if (const std::optional<ProcessEntry> behalf = BehalfEntry(name.pid, name.name)) {
    pending_processes_.push_back({name.time, *behalf, std::nullopt, ""});
  }
}

std::optional<ProcessEntry> PerfSource::BehalfEntry(uint32_t pid, std::string_view name) const {
  if (!request_.behalf_of) return std::nullopt;
  const std::optional<DomainId> domain = request_.behalf_of(pid, name);
  if (!domain) return std::nullopt;
  ProcessEntry entry = MakeEntry(ProcessEntryType::kBehalf, pid, pid);
  entry.parent = domain->value;
  return entry;
}

void PerfSource::AddPending(const PerfMap& map) {
  constexpr uint32_t kKernelPid = ~uint32_t{0};  // pid of modules' records
  if (map.pid == kKernelPid) return;
  if (MayBeCompilers(map.path)) perf_maps_->Add(map.pid);
  ProcessEntry entry = MakeEntry(ProcessEntryType::kMap, map.pid, map.tid);
  if (map.build_id.empty()) entry.parent = NumberOfFileWithoutId(map.path, map.inode);
  pending_processes_.push_back({map.time, entry,
                                MakeMap(map.address, map.length, map.offset, map.build_id),
                                std::string(map.path)});
}

uint32_t PerfSource::NumberOfFileWithoutId(std::string_view path, uint64_t inode) {
  const bool is_file = path.starts_with('/') && !path.starts_with("//");
  if (!is_file) return 0;
  const std::pair<std::string, uint64_t> file(path, inode);
  const auto known = files_without_id_.find(file);
  if (known != files_without_id_.end()) return known->second;
  if (files_without_id_.size() == kMaxFilesWithoutId) return 0;
  const auto number = static_cast<uint32_t>(files_without_id_.size() + 1);
  files_without_id_.emplace(file, number);
  return number;
}

void PerfSource::WriteFileIds(recording::SampleWriter& writer) {
  BuildIds reader;
  process_chunk_.Clear();
  const steady_clock::time_point until = steady_clock::now() + kMaxTimeForFileIds;
  for (const auto& [file, number] : files_without_id_) {
    if (steady_clock::now() >= until) {
      final_notes_.emplace_back(
          "some programs have no build-id, and there was no time to read all of them: reports do "
          "not "
          "name their functions");
      break;
    }
    const std::vector<uint8_t> id = reader.ReadOrContentId(file.first, file.second);
    if (id.empty()) continue;
    ProcessEntry entry = MakeEntry(ProcessEntryType::kFileId, 0, 0);
    entry.parent = number;
    entry.when = sampled_.end.value;
    const MapEntry only_id = MakeMap(0, 0, 0, std::as_bytes(std::span(id)));
    process_chunk_.Add(entry, &only_id, file.first);
  }
  writer.Append(request_.domain, process_chunk_);
  std::ranges::copy(reader.notes(), std::back_inserter(final_notes_));
}

void PerfSource::AddPending(const PerfTask& task) {
  ProcessEntry entry =
      MakeEntry(task.exit ? ProcessEntryType::kExit : ProcessEntryType::kFork, task.pid, task.tid);
  entry.parent = task.parent;
  pending_processes_.push_back({task.time, entry, std::nullopt, ""});
}

void PerfSource::WriteUntil(uint64_t until, recording::SampleWriter& writer) {
  if (!running_chunk_.empty()) writer.Append(request_.domain, running_chunk_);
  running_chunk_.Clear();
  const Tsc now = calls_->ReadTsc();
  const auto at_most = [until](const auto& pending) { return pending.time <= until; };

  std::ranges::stable_sort(pending_processes_, {}, &PendingProcess::time);
  const auto later = std::ranges::partition_point(pending_processes_, at_most);
  process_chunk_.Clear();
  for (auto pending = pending_processes_.begin(); pending != later; ++pending) {
    pending->entry.when = std::max(clock_.At(pending->time, now).begin, sampled_.begin).value;
    process_chunk_.Add(pending->entry, pending->map ? &*pending->map : nullptr, pending->text);
  }
  pending_processes_.erase(pending_processes_.begin(), later);
  writer.Append(request_.domain, process_chunk_);

  std::ranges::stable_sort(pending_samples_, {}, &PendingSample::time);
  const auto waiting = std::ranges::partition_point(pending_samples_, at_most);
  domain_unknown_chunk_.Clear();
  chunk_.Begin(steady_clock::now());
  for (auto pending = pending_samples_.begin(); pending != waiting; ++pending) {
    const TscRange when = clock_.At(pending->time, now);
    pending->entry.begin = std::max(when.begin, sampled_.begin).value;
    pending->entry.end = std::max(when.end.value, pending->entry.begin + 1);
    AddToChunk(*pending, writer);
    ++cpus_[pending->cpu].stream.kept;
  }
  chunk_.Write(writer);
  writer.Append(kDomXen, domain_unknown_chunk_);
  pending_samples_.erase(pending_samples_.begin(), waiting);
  DropWritten();
}

void PerfSource::AddToChunk(const PendingSample& pending, recording::SampleWriter& writer) {
  const auto callers = std::span(callers_).subspan(pending.callers_at, pending.callers);
  if (pending.domain_unknown) {
    domain_unknown_chunk_.Add(pending.entry, callers);
  } else if (!pending.has_stack) {
    chunk_.Add(pending.entry, callers);
  } else if (pending.stack_bytes == 0) {  // of a 32-bit program
    chunk_.Add(pending.entry, nullptr, callers, writer);
  } else {
    const recording::UserStack stack{
        registers_[pending.registers_at],
        std::span(stacks_).subspan(pending.stack_at, pending.stack_bytes)};
    chunk_.Add(pending.entry, &stack, callers, writer);
  }
}

void PerfSource::DropWritten() {
  std::vector<Address> callers;
  std::vector<UserRegisters> registers;
  std::vector<std::byte> stacks;
  const auto keep = [](auto& from, size_t& at, size_t count, auto& to) {
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(at);
    at = to.size();
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(count));
  };
  for (PendingSample& pending : pending_samples_) {
    keep(callers_, pending.callers_at, pending.callers, callers);
    if (pending.stack_bytes == 0) continue;
    keep(registers_, pending.registers_at, 1, registers);
    keep(stacks_, pending.stack_at, pending.stack_bytes, stacks);
  }
  callers_.swap(callers);
  registers_.swap(registers);
  stacks_.swap(stacks);
}

absl::Status PerfSource::Collect(recording::SampleWriter& writer) {
  const steady_clock::time_point begin = steady_clock::now();
  const double fill = Drain();
  WriteUntil(clock_.PairedUntil(), writer);
  if (request_.jitter && steady_clock::now() >= next_randomization_) RandomizePeriods();
  if (steady_clock::now() >= next_cpu_poll_) PollCpus();
  if (request_.sends_perf_maps) {
    const std::optional<std::string> grown = perf_maps_->ReadGrown();
    if (grown) writer.AppendPerfMaps(request_.domain, *grown);
  }
  drain_timer_.Drained(begin, steady_clock::now(), fill);
  return absl::OkStatus();
}

// Sets a new random period for each event with a fixed one; Linux varies the periods of events with
// a rate.
void PerfSource::RandomizePeriods() {
  next_randomization_ = steady_clock::now() + kRandomizeInterval;
  const double jitter = vpmu_ == kVpmuAll ? kJitterOfVpmuOfAll : kJitter;
  std::uniform_real_distribution<double> factor(1 - jitter, 1 + jitter);
  for (size_t i = 0; i < events_.size(); ++i) {
    const perf_event_attr& attributes = events_[i].event.attributes;
    if (attributes.freq != 0) continue;
    for (const Cpu& cpu : cpus_) {
      if (cpu.ring_fd < 0) continue;
      const double period = static_cast<double>(attributes.sample_period) / factor(random_);
      calls_->SetPeriod(cpu.fds[i], std::max<uint64_t>(static_cast<uint64_t>(period), 1));
    }
  }
}

absl::Status PerfSource::OnDomainCreated(const recording::DomainInfo& /*domain*/) {
  return UnimplementedError("perf samples the Linux that it runs in");
}

PerfSource::Cpu* PerfSource::OpenCpuOf(uint32_t number) {
  const auto found = std::ranges::find_if(cpus_, [number](const Cpu& cpu) {
    return cpu.stream.vcpu.vcpu.value == number && cpu.ring_fd >= 0;
  });
  return found == cpus_.end() ? nullptr : &*found;
}

void PerfSource::PollCpus() {
  next_cpu_poll_ = steady_clock::now() + kCpuPollInterval;
  const std::vector<uint32_t> online = calls_->OnlineCpus();
  for (Cpu& cpu : cpus_) {
    const bool gone = std::ranges::find(online, cpu.stream.vcpu.vcpu.value) == online.end();
    if (gone && cpu.ring_fd >= 0) CloseCpu(cpu);  // its ring was emptied just now
  }
  for (const uint32_t number : online) {
    if (OpenCpuOf(number) != nullptr || refused_.contains(number)) continue;
    const absl::Status status = OnCpuOnline(number);
    if (status.ok()) continue;
    if (Cpu* const half = OpenCpuOf(number)) CloseCpu(*half);
    refused_.insert(number);
    final_notes_.push_back(fmt::format("CPU {} came online, and perf does not sample it: {}",
                                       number, Message(status)));
  }
}

absl::Status PerfSource::OnCpuOnline(uint32_t cpu) {
  XENOSCOPE_RETURN_IF_ERROR(OpenCpu(cpu));
  const Cpu* const opened = OpenCpuOf(cpu);
  if (opened == nullptr) return absl::OkStatus();  // it has gone offline again
  if (const int error = calls_->Enable(opened->ring_fd, true); error < 0) {
    return PerfError(*calls_, -error, "dummy");
  }
  return EnableEvents(*opened);
}

void PerfSource::CloseCpu(Cpu& cpu) {
  // For losses at the end there is no later record with which the kernel could report them.
  uint64_t lost = 0;
  for (const int fd : cpu.fds) {
    PerfCount count;
    if (calls_->Read(fd, count) == 0) lost += count.lost.value_or(0);
    calls_->Close(fd);
  }
  cpu.stream.logged.lost = std::max(cpu.stream.logged.lost, lost);
  cpu.stream.ring->damaged += cpu.ring.damaged();
  calls_->Unmap(cpu.ring.mapping());
  calls_->Close(cpu.ring_fd);
  cpu.fds.clear();
  cpu.ring_fd = -1;
}

absl::Status PerfSource::Stop(recording::SampleWriter& writer) {
  absl::Status status;
  for (const Cpu& cpu : cpus_) {
    for (size_t i = 0; i < cpu.fds.size(); ++i) {
      const int error = calls_->Enable(cpu.fds[i], false);
      if (error < 0 && status.ok()) {
        status = PerfError(*calls_, -error, events_[i].event.name.c_str());
      }
    }
  }
  sampled_.end = calls_->ReadTsc();
  perf_maps_->AskJavaVmsAgain();
  std::ranges::copy(perf_maps_->Notes(), std::back_inserter(final_notes_));
  Drain();
  WriteUntil(~uint64_t{0}, writer);
  Close().IgnoreError();  // it counts what was lost
  WriteFileIds(writer);
  for (Cpu& cpu : cpus_) cpu.stream.complete = true;
  return status;
}

absl::Status PerfSource::SaveSoFar(const recording::Writer& writer) {
  const std::optional<std::string> maps = perf_maps_->ReadNew();
  if (!maps) return absl::OkStatus();
  return writer
      .AddSymbolContent(SymbolFile::Kind::kPerfMaps, request_.domain, AsBytes(*maps), kPerfMapName)
      .status();
}

absl::Status PerfSource::Save(const recording::Writer& writer, recording::RecordingInfo& info) {
  const auto add = [&](SymbolFile::Kind kind, Bytes content, const char* from) -> absl::Status {
    if (content.empty()) return absl::OkStatus();
    XENOSCOPE_ASSIGN_OR_RETURN(SymbolFile added,
                               writer.AddSymbolContent(kind, request_.domain, content, from));
    info.symbols.push_back(std::move(added));
    return absl::OkStatus();
  };
  XENOSCOPE_RETURN_IF_ERROR(add(SymbolFile::Kind::kVdso, ReadVdso(), "[vdso]"));
  const std::string maps = perf_maps_->Read();
  return add(SymbolFile::Kind::kPerfMaps, AsBytes(maps), kPerfMapName);
}

absl::Status PerfSource::Close() {
  perf_maps_->Stop();
  for (Cpu& cpu : cpus_) {
    if (cpu.ring_fd >= 0) CloseCpu(cpu);
  }
  return absl::OkStatus();
}

std::vector<std::string> PerfSource::FinalNotes() const {
  std::vector<std::string> notes = final_notes_;
  if (full_branches_ > 0) {
    notes.push_back(fmt::format(
        "source perf: {} of {} call chains by branch records have as many callers in user mode as "
        "the processor records ({}); where outer ones matter, use --call-graph dwarf",
        full_branches_, branch_chains_, most_branches_));
  }
  return notes;
}

std::vector<StreamInfo> PerfSource::Streams() const {
  std::vector<StreamInfo> streams;
  for (const Cpu& cpu : cpus_) streams.push_back(cpu.stream);
  return streams;
}

}  // namespace xenoscope::sampler
