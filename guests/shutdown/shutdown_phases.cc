#include "guests/shutdown/shutdown_phases.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "guests/ftrace/events_in_order.h"
#include "guests/ftrace/program_name.h"

namespace xenoscope::guests {
namespace {

constexpr uint32_t kInitThread = 1;
// Programs that shut a Linux down. Xen's toolstack lets its kernel execute poweroff or reboot
// (orderly_poweroff and orderly_reboot, kernel/reboot.c).
constexpr std::array<std::string_view, 4> kPrograms{"poweroff", "reboot", "halt", "shutdown"};
constexpr uint64_t kCloneThread = 0x10000;  // CLONE_THREAD: no process of its own

// Whether a signal asks a process to end.
bool AsksToEnd(uint64_t signal) {
  constexpr std::array<uint64_t, 5> kSignals{1, 2, 3, 9, 15};  // SIGHUP, INT, QUIT, KILL, TERM
  return std::ranges::find(kSignals, signal) != kSignals.end();
}
constexpr uint64_t kSigTerm = 15;

// Whether reboot(2) ends this Linux (LINUX_REBOOT_CMD_*): it does other things, too.
bool EndsLinux(uint64_t command) {
  constexpr std::array<uint64_t, 5> kCommands{0x01234567,   // RESTART
                                              0xcdef0123,   // HALT
                                              0x4321fedc,   // POWER_OFF
                                              0xa1b2c3d4,   // RESTART2
                                              0x45584543};  // KEXEC
  return std::ranges::find(kCommands, command & 0xffffffff) != kCommands.end();
}

// A guest's names may be long.
std::string_view ShortName(std::string_view text) {
  return text.substr(0, ShutdownPhases::kMaxName);
}

class ShutdownFinder {
 public:
  explicit ShutdownFinder(std::string_view from) : from_(from) {}

  // Takes the next event in the order of time.
  void Take(const CpuCursor& cursor) {
    const KernelEvent& event = cursor.event();
    const Tsc at = std::max(cursor.at(), found_.last_event);
    found_.losses += cursor.after_loss() ? 1 : 0;
    found_.last_event = at;
    switch (event.kind) {
      case KernelEventKind::kExec:
        return OnExec(event, at);
      case KernelEventKind::kNewTask:
        if ((event.number & kCloneThread) == 0) Open(event, at, 0);
        return;
      case KernelEventKind::kSignal:
        return OnSignal(event, at);
      case KernelEventKind::kExit:
        return OnExit(event, at);
      case KernelEventKind::kReboot:
        if (!reboot_ && EndsLinux(event.number)) reboot_ = at;
        return;
      default:
        return;
    }
  }

  absl::StatusOr<ShutdownPhases> Finish() {
    if (!from_.empty() && !begin_) {
      return NotFoundError("no thread executed {} while its events were recorded", from_);
    }
    const std::optional<Tsc> begin = Begin();
    if (begin) AddPhases(*begin);
    // Who signals all signals the kernel's own threads, too, which ignore that.
    for (const auto& [pid, process] : open_) {
      if (process.delivered) Keep(process, found_.last_event);
    }
    std::ranges::stable_sort(found_.processes, {}, [](const EndedProcess& process) {
      return std::pair(process.when.end, process.pid);
    });
    // What ended before the shutdown is not of it.
    std::erase_if(found_.processes, [&begin](const EndedProcess& process) {
      return !begin || process.when.begin < *begin;
    });
    return std::move(found_);
  }

 private:
  // Returns where the shutdown begins, if the events show one.
  [[nodiscard]] std::optional<Tsc> Begin() const {
    if (begin_) return begin_;
    std::optional<Tsc> first = reboot_;
    const auto take = [&first](Tsc at) { first = std::min(first.value_or(at), at); };
    if (first_term_) take(*first_term_);
    if (!executed_.empty()) take(executed_.front().begin);
    return first;
  }

  void AddPhases(Tsc begin) {
    if (reboot_ != begin) found_.phases.push_back({"user space", begin});
    for (ShutdownPhase& phase : executed_) {
      if (phase.begin > begin && phase.begin < reboot_.value_or(found_.last_event + 1)) {
        found_.phases.push_back(std::move(phase));
      }
    }
    found_.has_reboot = reboot_ && *reboot_ >= begin;
    if (found_.has_reboot) found_.phases.push_back({"kernel", *reboot_});
  }

  void OnExec(const KernelEvent& event, Tsc at) {
    const std::string_view name = ProgramName(event.name);
    const bool begins = from_.empty() ? std::ranges::find(kPrograms, name) != kPrograms.end()
                                      : IsProgram(event.name, from_);
    if (begins && !begin_) {
      begin_ = at;
      // What has ended is not of the shutdown.
      found_.processes.clear();
      found_.processes_left_out = 0;
    }
    if (event.thread == kInitThread && executed_.size() < ShutdownPhases::kMaxPhases) {
      executed_.push_back({std::string(ShortName(name)), at});
    }
  }

  void OnSignal(const KernelEvent& event, Tsc at) {
    if (!AsksToEnd(event.number)) return;
    if (event.number == kSigTerm && event.current == kInitThread && !first_term_) first_term_ = at;
    const auto signal = static_cast<uint8_t>(event.number);
    if (!open_.contains(event.thread)) Open(event, at, signal);
    const auto open = open_.find(event.thread);
    if (open == open_.end()) return;
    Asked& process = open->second;
    if (process.first_signal == 0) {
      process.first_signal = signal;
      process.when.begin = at;
    }
    process.last_signal = signal;
    process.delivered |= event.state == 0;
  }

  // A process begins, or has to end.
  void Open(const KernelEvent& event, Tsc at, uint8_t signal) {
    if (open_.size() == ShutdownPhases::kMaxProcesses) {
      ++found_.processes_left_out;
      return;
    }
    Asked& process = open_[event.thread];
    process = {};
    process.pid = event.thread;
    process.name = ShortName(event.name);
    process.when = {at, at};
    process.first_signal = process.last_signal = signal;
  }

  void OnExit(const KernelEvent& event, Tsc at) {
    const auto open = open_.find(event.thread);
    if (open == open_.end()) return;
    Asked& process = open->second;
    process.name = ShortName(event.name);
    process.ended = true;
    Keep(process, at);
    open_.erase(open);
  }

  void Keep(EndedProcess process, Tsc end) {
    if (found_.processes.size() == ShutdownPhases::kMaxProcesses) {
      ++found_.processes_left_out;
      return;
    }
    process.when.end = end;
    found_.processes.push_back(std::move(process));
  }

  // A process that is to end.
  struct Asked : EndedProcess {
    bool delivered = false;  // one of its signals
  };

  std::string_view from_;
  ShutdownPhases found_;
  std::optional<Tsc> begin_;             // a program of shutdowns was executed
  std::optional<Tsc> first_term_;        // by thread 1
  std::vector<ShutdownPhase> executed_;  // by thread 1
  std::optional<Tsc> reboot_;
  absl::flat_hash_map<uint32_t, Asked> open_;  // by pid
};

}  // namespace

absl::StatusOr<ShutdownPhases> FindShutdownPhases(const KernelTrace& trace, const EventClock& clock,
                                                  std::string_view from) {
  ShutdownFinder finder(from);
  KernelTraceFaults faults;
  TakeEventsInOrder(trace, clock, faults, [&finder](const CpuCursor& cursor) {
    finder.Take(cursor);
    return true;
  });
  XENOSCOPE_ASSIGN_OR_RETURN(ShutdownPhases found, finder.Finish());
  found.faults = faults;
  return found;
}

}  // namespace xenoscope::guests
