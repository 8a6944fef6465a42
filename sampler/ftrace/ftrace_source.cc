#include "sampler/ftrace/ftrace_source.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "sampler/ftrace/cpu_times.h"
#include "sampler/ftrace/event_list.h"
#include "sampler/ftrace/function_patterns.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::steady_clock;

// Without these two nothing is known of threads.
constexpr std::array<const char*, 2> kNeeded{"sched:sched_switch", "sched:sched_waking"};
constexpr std::array<const char*, 15> kWanted{
    "sched:sched_wakeup_new",   "sched:sched_process_fork",  "sched:sched_process_exec",
    "sched:sched_process_exit", "sched:sched_migrate_task",  "task:task_newtask",
    "task:task_rename",         "irq:irq_handler_entry",     "irq:irq_handler_exit",
    "irq:softirq_entry",        "irq:softirq_exit",          "cgroup:cgroup_mkdir",
    "cgroup:cgroup_rename",     "cgroup:cgroup_attach_task", "cgroup:cgroup_transfer_tasks"};

// A page that is not full costs as much of the disk as a full one, so it is read this seldom: what
// a crash of dom0 loses at most.
constexpr steady_clock::duration kPartialPageInterval = std::chrono::seconds(2);
// What a kernel says of its CPUs is recorded this often, so that a crash leaves most of it.
constexpr steady_clock::duration kCpuTimesInterval = std::chrono::seconds(5);
// Limit of one read of a CPU, so that other CPUs are not kept waiting.
constexpr size_t kMaxPagesPerRead = 1024;

// Whether a page has so few events that it is the one that is being filled: less than half of what
// it can have. The kernel gives it a new one then, with the events of the reading, where system
// calls are recorded: to read on would never end.
bool IsBeingFilled(Bytes page) {
  constexpr uint64_t kCommit = 8;  // offset of the bytes of events (struct buffer_data_page)
  constexpr uint32_t kSizeMask = 0xfffff;  // above it are flags of losses
  return (Load<uint32_t>(page, kCommit).value_or(0) & kSizeMask) < page.size() / 2;
}

}  // namespace

void AddThreads(std::span<const RunningThread> threads, recording::ProcessChunk& chunk) {
  for (const RunningThread& thread : threads) {
    recording::ProcessEntry entry;
    entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kThread);
    entry.flags = recording::kAtStart;
    entry.pid = thread.pid;
    entry.tid = thread.tid;
    chunk.Add(entry, nullptr, thread.name);
    if (thread.pid != thread.tid || thread.cgroup.empty()) continue;
    entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kCgroup);
    chunk.Add(entry, nullptr, thread.cgroup);
  }
}

void AddBehalf(std::span<const RunningThread> threads, const BehalfOf& behalf_of, Tsc when,
               recording::ProcessChunk& chunk) {
  if (!behalf_of) return;
  for (const RunningThread& thread : threads) {
    if (thread.pid != thread.tid) continue;
    const std::optional<DomainId> domain = behalf_of(thread.pid, thread.name);
    if (!domain) continue;
    recording::ProcessEntry entry;
    entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kBehalf);
    entry.pid = entry.tid = thread.pid;
    entry.parent = domain->value;
    entry.when = when.value;
    chunk.Add(entry, nullptr, "");
  }
}

absl::StatusOr<std::unique_ptr<FtraceSource>> FtraceSource::Open(
    const FtraceRequest& request, std::function<Tsc()> read_tsc,
    std::function<std::vector<RunningThread>()> running) {
  const std::optional<std::string> root = TraceInstance::FindTracefs();
  if (!root) {
    return PreconditionError(
        "tracefs is not mounted, or not for this user: mount -t tracefs none /sys/kernel/tracing");
  }
  XENOSCOPE_RETURN_IF_ERROR(CheckEventList(request.events));
  XENOSCOPE_RETURN_IF_ERROR(CheckFunctionPatterns(request.functions));
  XENOSCOPE_ASSIGN_OR_RETURN(TraceInstance instance,
                             TraceInstance::Create(*root, kInstance, request.buffer_kb));
  // Nothing is recorded before Start. Turning it on then keeps the tracer.
  XENOSCOPE_RETURN_IF_ERROR(instance.TurnOff());
  std::unique_ptr<FtraceSource> source(
      new FtraceSource(request, std::move(instance), std::move(read_tsc), std::move(running)));
  source->ChooseEvents();
  XENOSCOPE_RETURN_IF_ERROR(source->ChooseFunctions());
  for (const uint32_t number : source->instance_->cpus()) {
    XENOSCOPE_ASSIGN_OR_RETURN(File pages, source->instance_->OpenPages(number));
    source->cpus_.push_back({.number = number, .pages = std::move(pages)});
  }
  return source;
}

FtraceSource::~FtraceSource() { Close().IgnoreError(); }

recording::SourceInfo FtraceSource::Info() const {
  recording::SourceInfo info;
  info.name = kName;
  info.drain_interval_ns = static_cast<uint64_t>(request_.drain_interval.count());
  return info;
}

void FtraceSource::ChooseEvents() {
  std::vector<std::string>& events = request_.events;
  if (!events.empty() && !request_.may_have_events) {
    notes_.emplace_back(
        "only its events of threads are recorded, as its owner has not allowed others (xenoscope "
        "agent --allow-stacks)");
    events.clear();
  }
  std::erase_if(events, [this](const std::string& event) {
    const bool has = instance_->Has(event);
    if (!has) {
      notes_.push_back(fmt::format("--guest-events: the kernel has no event {}", event));
    }
    return !has;
  });
}

absl::Status FtraceSource::ChooseFunctions() {
  if (request_.functions.empty()) return absl::OkStatus();
  if (!request_.may_have_events) {
    notes_.emplace_back(
        "its functions are not traced, as its owner has not allowed that (xenoscope agent "
        "--allow-stacks)");
    return absl::OkStatus();
  }
  bool any = false;
  for (const std::string& pattern : request_.functions) {
    const absl::Status added = instance_->AddFunctions(pattern);
    any |= added.ok();
    if (!added.ok()) notes_.push_back(fmt::format("--guest-functions: {}", Message(added)));
  }
  if (!any) return absl::OkStatus();  // a tracer would trace all
  if (instance_->SetTracer("function_graph").ok()) return absl::OkStatus();
  const absl::Status counts = instance_->SetTracer("function");
  notes_.push_back(counts.ok()
                       ? "--guest-functions: this Linux has function_graph in its first instance "
                         "only (6.13 and later have it in all): calls are counted, with their "
                         "callers, and have no times"
                       : fmt::format("--guest-functions: {}", Message(counts)));
  return absl::OkStatus();
}

absl::Status FtraceSource::EnableEvents() {
  for (const char* const event : kNeeded) XENOSCOPE_RETURN_IF_ERROR(instance_->Enable(event));
  for (const char* const event : kWanted) {
    const absl::Status status = instance_->Enable(event);
    if (!absl::IsNotFound(status)) XENOSCOPE_RETURN_IF_ERROR(status);
  }
  for (const std::string& event : request_.events) {
    XENOSCOPE_RETURN_IF_ERROR(instance_->Enable(event));
  }
  return absl::OkStatus();
}

absl::Status FtraceSource::PrepareStart() {
  XENOSCOPE_RETURN_IF_ERROR(EnableEvents());
  XENOSCOPE_ASSIGN_OR_RETURN(formats_, instance_->Formats());
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status FtraceSource::Start() {
  if (!prepared_) XENOSCOPE_RETURN_IF_ERROR(PrepareStart());
  const Tsc now = read_tsc_();
  for (Cpu& cpu : cpus_) {
    cpu.read_before = now;
    cpu.last_read = steady_clock::now();
  }
  // Events come first, so that no thread that begins meanwhile is missed.
  XENOSCOPE_RETURN_IF_ERROR(instance_->TurnOn());
  threads_ = running_();
  first_cpu_times_ = CpuTimes();
  cpu_times_due_ = steady_clock::now() + kCpuTimesInterval;
  timer_.Start(steady_clock::now());
  return absl::OkStatus();
}

void FtraceSource::WriteRunning(recording::SampleWriter& writer) {
  recording::ProcessChunk chunk;
  AddThreads(threads_, chunk);
  AddBehalf(threads_, request_.behalf_of, read_tsc_(), chunk);
  threads_.clear();
  writer.Append(request_.domain, chunk);
}

void FtraceSource::WriteBehalf(recording::SampleWriter& writer) {
  if (!request_.behalf_of) return;
  recording::ProcessChunk chunk;
  AddBehalf(running_(), request_.behalf_of, read_tsc_(), chunk);
  if (!chunk.empty()) writer.Append(request_.domain, chunk);
}

std::vector<recording::CpuTimesEntry> FtraceSource::CpuTimes() const {
  if (!request_.reads_cpu_times) return {};
  return ReadCpuTimes(read_tsc_);
}

void FtraceSource::WriteCpuTimes(std::span<const recording::CpuTimesEntry> cpus,
                                 recording::SampleWriter& writer) const {
  if (cpus.empty()) return;
  const Tsc before{cpus.front().before};
  writer.AppendCpuTimes(request_.domain, {before, before, Tsc{cpus.front().after}}, cpus);
}

absl::StatusOr<double> FtraceSource::Read(Cpu& cpu, bool all, recording::SampleWriter& writer) {
  const size_t page_size = instance_->page_size();
  const size_t buffer = size_t{request_.buffer_kb} << 10;
  const steady_clock::time_point now = steady_clock::now();
  all =
      all || cpu.has_more || request_.reads_at_once || now - cpu.last_read >= kPartialPageInterval;
  // Linux says that there is something to read when its buffer_percent (half) is full.
  pollfd ready{.fd = cpu.pages.fd(), .events = POLLIN, .revents = 0};
  if (!all && poll(&ready, 1, 0) <= 0) return 0;
  const size_t room = writer.room() / (page_size + sizeof(recording::ChunkHeader));
  cpu.has_more = room < kMaxPagesPerRead;  // unless the end comes before
  cpu.last_read = now;
  const Tsc before = read_tsc_();
  pages_.clear();
  for (size_t count = 0; count < std::min(room, kMaxPagesPerRead); ++count) {
    const size_t at = pages_.size();
    pages_.resize(at + page_size);
    const ssize_t got = read(cpu.pages.fd(), pages_.data() + at, page_size);
    if (got == static_cast<ssize_t>(page_size)) {
      if (!IsBeingFilled(Bytes(pages_).subspan(at))) continue;
      cpu.has_more = false;
      break;
    }
    pages_.resize(at);
    cpu.has_more = false;
    if (got >= 0 || errno == EAGAIN || errno == EINTR) break;
    return ErrnoError(errno, "cannot read the kernel's trace of CPU {}", cpu.number);
  }
  if (!pages_.empty()) {
    const recording::DrainTimes times{cpu.read_before, before, read_tsc_()};
    writer.AppendTracePages({request_.domain, VcpuId{cpu.number}}, times,
                            static_cast<uint32_t>(page_size), pages_);
  }
  cpu.read_before = before;
  return std::min(1.0, static_cast<double>(pages_.size()) / static_cast<double>(buffer));
}

absl::Status FtraceSource::ReadAll(bool all, recording::SampleWriter& writer, double& fill) {
  if (!formats_.empty()) {
    writer.AppendTraceFormats(request_.domain, std::exchange(formats_, {}));
    WriteRunning(writer);
    WriteCpuTimes(std::exchange(first_cpu_times_, {}), writer);
  }
  for (size_t i = 0; i < cpus_.size(); ++i) {
    Cpu& cpu = cpus_[(first_cpu_ + i) % cpus_.size()];
    XENOSCOPE_ASSIGN_OR_RETURN(const double used, Read(cpu, all, writer));
    fill = std::max(fill, used);
  }
  // Where there is little room, each CPU gets it in turn.
  first_cpu_ = (first_cpu_ + 1) % cpus_.size();
  return absl::OkStatus();
}

bool FtraceSource::HasMore() const { return std::ranges::any_of(cpus_, &Cpu::has_more); }

absl::Status FtraceSource::Collect(recording::SampleWriter& writer) {
  if (stopped_) return ReadRest(writer);
  const steady_clock::time_point begin = steady_clock::now();
  double fill = 0;
  XENOSCOPE_RETURN_IF_ERROR(ReadAll(/*all=*/false, writer, fill));
  if (begin >= cpu_times_due_) {
    cpu_times_due_ = begin + kCpuTimesInterval;
    WriteCpuTimes(CpuTimes(), writer);
  }
  timer_.Drained(begin, steady_clock::now(), fill);
  return absl::OkStatus();
}

absl::Status FtraceSource::OnDomainCreated(const recording::DomainInfo& /*domain*/) {
  return UnimplementedError("ftrace sees the Linux that it runs in");
}

absl::Status FtraceSource::Stop(recording::SampleWriter& writer) {
  if (!instance_) return absl::OkStatus();
  XENOSCOPE_RETURN_IF_ERROR(instance_->TurnOff());
  stopped_ = true;
  WriteBehalf(writer);
  const std::vector<recording::CpuTimesEntry> last = CpuTimes();
  absl::Status rest = ReadRest(writer);  // and the first CPU times, if nothing was read yet
  WriteCpuTimes(last, writer);
  return rest;
}

absl::Status FtraceSource::ReadRest(recording::SampleWriter& writer) {
  // Nothing is added any more, so this ends.
  for (double fill = 1; fill > 0;) {
    fill = 0;
    XENOSCOPE_RETURN_IF_ERROR(ReadAll(/*all=*/true, writer, fill));
  }
  for (Cpu& cpu : cpus_) cpu.counts = instance_->Counts(cpu.number);
  return absl::OkStatus();
}

std::vector<recording::KernelTraceInfo> FtraceSource::KernelTraces() const {
  std::vector<recording::KernelTraceInfo> traces;
  for (const Cpu& cpu : cpus_) {
    traces.push_back({.source = kName,
                      .vcpu = {request_.domain, VcpuId{cpu.number}},
                      .read = cpu.counts.read,
                      .lost = cpu.counts.lost + (cpu.has_more ? cpu.counts.unread : 0)});
  }
  return traces;
}

absl::Status FtraceSource::Close() {
  for (Cpu& cpu : cpus_) cpu.pages = File();  // Linux keeps an instance that is being read
  instance_.reset();
  return absl::OkStatus();
}

}  // namespace xenoscope::sampler
