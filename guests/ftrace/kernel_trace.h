// The trace of one domain's kernel in a recording: its formats, the threads that it began with, and
// each CPU's pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "correlate/offset_ranges.h"
#include "guests/ftrace/formats.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/ftrace/page_reader.h"
#include "recording/chunk_reader.h"
#include "recording/sample_format.h"

namespace xenoscope::guests {

// A thread that ran when recording began.
struct InitialThread {
  uint32_t pid = 0;
  uint32_t tid = 0;
  std::string_view name;
};
// The cgroup in which a process was then.
struct InitialCgroup {
  uint32_t pid = 0;
  std::string_view path;
};

// What the domain's kernel said of a CPU, and the host's TSCs between which that came.
struct CpuTimesReading {
  recording::CpuTimesEntry entry;
  TscRange came;
};
// The first reading of a CPU and the last one, which may be the same.
struct CpuTimesReadings {
  std::optional<CpuTimesReading> first;
  CpuTimesReading last;
  bool goes_back = false;  // one says less than the one before
};

// A part of the recording in which one offset of guest TSC - host TSC explains the answers of the
// domain's agent. Between two of these the guest's TSC was set.
struct AnsweredEpoch {
  correlate::OffsetRange offset{std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max()};
  uint64_t answers = 0;
  Tsc set_before;  // it was set before this instant of the host's TSC
  Tsc set_after;   // it was set again after this one
};

// What a domain's agent answered about its TSC.
struct AnsweredClock {
  std::vector<AnsweredEpoch> epochs;  // in the order of time
  uint64_t answers = 0;               // that an epoch explains
  uint64_t bad_answers = 0;           // that contradict those before

  // Two answers that agree with each other and not with the epoch begin a new one.
  void Add(Tsc before, uint64_t guest, Tsc after);
  // Takes what has not begun an epoch for bad.
  void Finish();

  // Epochs that are told apart; answers that would begin another one are bad.
  static constexpr size_t kMaxEpochs = 64;

 private:
  std::optional<AnsweredEpoch> next_;
};

// How the times of a domain's events become the host's: guest TSC - host TSC, in parts of the
// trace.
struct EventClock {
  struct Part {
    int64_t offset = 0;
    // By CPU: the number of the first event of the part, from 1. Empty: it has all events.
    std::vector<uint64_t> first_events;
  };
  std::vector<Part> parts;  // in the order of time

  // One offset holds for all events.
  static EventClock Fixed(int64_t offset) { return {{{.offset = offset, .first_events = {}}}}; }
};

// What could not be read. Nothing is passed over without being counted.
struct KernelTraceFaults {
  uint64_t damaged_bytes = 0;  // bytes of pages that hold no events
  uint64_t malformed = 0;      // events that are shorter than their format
  uint64_t disordered = 0;     // events that say an earlier time than the one before

  void Add(const KernelTraceFaults& more) {
    damaged_bytes += more.damaged_bytes;
    malformed += more.malformed;
    disordered += more.disordered;
  }
};

// What a live view keeps of a domain's trace while it frees the begin of its file: the formats,
// what the agent answered, and the threads that there are when the part that is read begins.
class KernelTraceBegin {
 public:
  struct Thread {
    uint32_t pid = 0;
    uint32_t tid = 0;
    std::string name;
    bool has_ended = false;  // it does not run again after the part that was read last
  };
  struct Process {
    uint32_t pid = 0;
    std::string cgroup;
  };
  // Limit of threads, and of processes, that the file says.
  static constexpr size_t kMaxThreads = size_t{1} << 17;

  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_; }
  // Replaces the threads and processes by those that the events have shown
  // (guests/threads/learn_threads.h).
  void Set(std::vector<Thread> threads, std::vector<Process> processes) {
    threads_ = std::move(threads);
    processes_ = std::move(processes);
  }

 private:
  friend class KernelTrace;
  // Adds what the file says of threads when recording began.
  void Keep(std::span<const InitialThread> threads, std::span<const InitialCgroup> cgroups);

  uint64_t read_ = 0;  // bytes of the file in which all but pages was read
  std::string formats_;
  AnsweredClock clock_;
  std::vector<Thread> threads_;
  std::vector<Process> processes_;
};

class KernelTrace {
 public:
  // `file` is a samples/NAME.samples (recording/sample_format.h) and outlives the result. Nothing:
  // the domain has no pages in it. Errors (InvalidArgument): those of ChunkReader and ParseFormats;
  // pages without formats, or of another size than these say. O(file); memory: 16 bytes a chunk.
  // `written_as` is the domain that the file names, if that is another one: a guest that wrote it
  // does not know its number.
  static absl::StatusOr<std::optional<KernelTrace>> Open(
      Bytes file, DomainId domain, std::optional<DomainId> written_as = std::nullopt);

  // Opens the file of a recording in progress, of which `begin` has what was read of it before:
  // nothing the first time. It outlives the result. Of the pages only those from the offset
  // `pages_begin` on are read. Errors: as Open's. O(file behind that offset).
  static absl::StatusOr<std::optional<KernelTrace>> OpenLive(Bytes file, DomainId domain,
                                                             uint64_t pages_begin,
                                                             KernelTraceBegin& begin);

  [[nodiscard]] DomainId domain() const { return domain_; }
  [[nodiscard]] const Formats& formats() const { return formats_; }
  [[nodiscard]] const EventDecoder& decoder() const { return decoder_; }
  [[nodiscard]] const std::vector<InitialThread>& threads() const { return threads_; }
  [[nodiscard]] const std::vector<InitialCgroup>& cgroups() const { return cgroups_; }
  // Of a domain without an agent nothing is known.
  [[nodiscard]] const AnsweredClock& clock() const { return clock_; }
  // What its kernel said of its CPUs, by CPU.
  [[nodiscard]] const std::vector<CpuTimesReadings>& cpu_times() const { return cpu_times_; }
  // The number of CPUs: those that have pages, and all below them.
  [[nodiscard]] size_t cpus() const { return pages_.size(); }
  // Returns the runs of pages of the CPU, in their order.
  [[nodiscard]] const std::vector<Bytes>& PagesOf(size_t cpu) const { return pages_[cpu]; }

  static constexpr size_t kMaxCpus = 4096;

 private:
  // The parts of the file that are read: pages from one offset on, all else from another one.
  struct Parts {
    DomainId written_as;
    uint64_t pages = 0;
    uint64_t rest = 0;
  };

  explicit KernelTrace(DomainId domain) : domain_(domain) {}
  // Returns whether the domain has pages. `formats` gets what the file has of them; `read` the
  // offset of the end of the last whole chunk.
  absl::StatusOr<bool> ReadChunks(Bytes file, const Parts& parts, std::string& formats,
                                  uint64_t& read);
  absl::Status SetFormats(std::string_view formats);
  absl::Status ReadThreads(Bytes file, const Parts& parts);
  void AddAnswers(Bytes entries, uint32_t entry_size);
  void AddCpuTimes(const recording::Chunk& chunk);

  DomainId domain_;
  Formats formats_;
  EventDecoder decoder_;
  std::vector<InitialThread> threads_;
  std::vector<InitialCgroup> cgroups_;
  AnsweredClock clock_;
  std::vector<CpuTimesReadings> cpu_times_;
  std::optional<uint32_t> page_size_;
  std::vector<std::vector<Bytes>> pages_;  // by CPU
};

// Follows one CPU's events in the order of the buffer.
class CpuCursor {
 public:
  // `clock` makes the events' times the host's, which do not go back.
  CpuCursor(const KernelTrace& trace, size_t cpu, const EventClock& clock);
  // Times are the guest's.
  CpuCursor(const KernelTrace& trace, size_t cpu)
      : trace_(&trace), cpu_(static_cast<uint32_t>(cpu)), reader_(Bytes(), trace.formats().page) {}

  // Goes to the next event that the decoder knows. False: there is none.
  bool Next();
  // Goes to the next event. Of one that the decoder does not know, event() says nothing.
  bool NextOfAll();

  // Returns the event; its `tsc` is of the guest's clock.
  [[nodiscard]] const KernelEvent& event() const { return event_; }
  // Returns the time of the event.
  [[nodiscard]] Tsc at() const { return at_; }
  // Returns the bytes of the event, which begin with the number of its format.
  [[nodiscard]] Bytes data() const { return raw_.data; }
  // Whether events between the one before and this one were lost.
  [[nodiscard]] bool after_loss() const { return after_loss_; }
  [[nodiscard]] uint32_t cpu() const { return cpu_; }
  [[nodiscard]] const KernelTraceFaults& faults() const { return faults_; }
  // Returns the number of events up to here, those that the decoder does not know included.
  [[nodiscard]] uint64_t events() const { return events_; }

 private:
  bool NextPage();
  void SetTime();

  // From this event on, numbered from 1, the guest's TSC is so far from the host's.
  struct ClockPart {
    uint64_t first_event = 0;
    int64_t offset = 0;
  };

  const KernelTrace* trace_;
  uint32_t cpu_;
  std::vector<ClockPart> clock_;  // none: times are the guest's
  size_t part_ = 0;               // of the clock
  size_t run_ = 0;                // index of the run of pages
  Bytes rest_;                    // pages of the run that were not begun yet
  PageReader reader_;
  RawEvent raw_;
  KernelEvent event_;
  bool is_known_ = false;  // event_ is decoded
  Tsc at_;
  bool after_loss_ = false;
  bool loss_pending_ = false;
  uint64_t events_ = 0;
  KernelTraceFaults faults_;
};

// What the tracing of functions wrote.
struct FunctionEvents {
  uint64_t events = 0;
  uint64_t bytes = 0;  // in the kernel's buffers

  // Adds the cursor's event, if it is one of these.
  void Add(const CpuCursor& cursor) {
    if (!IsOfFunction(cursor.event().kind)) return;
    constexpr size_t kHead = sizeof(uint32_t);  // of each event
    ++events;
    bytes += kHead + cursor.data().size();
  }
};

}  // namespace xenoscope::guests
