#include "guests/boot/boot_phases.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "guests/ftrace/events_in_order.h"
#include "guests/ftrace/program_name.h"

namespace xenoscope::guests {
namespace {

constexpr uint32_t kInit = 1;  // the thread that calls initcalls and becomes init
// Levels after which the kernel does something else before the next one (init/main.c): these are
// not called by do_initcalls().
constexpr std::string_view kConsole = "console";
constexpr std::string_view kEarly = "early";
constexpr std::string_view kUserSpace = "user space";

std::string_view Name(std::string_view text) { return text.substr(0, BootPhases::kMaxName); }

// Whether an event of the level `event` also covers initcalls of the level `own`: those of "fs"
// cover "fs_sync" and "rootfs", which no event names.
bool Covers(std::string_view event, std::string_view own) {
  if (own == event || (event == "fs" && own == "rootfs")) return true;
  return own.starts_with(event) && own.substr(event.size()) == "_sync";
}

class Finder {
 public:
  Finder(std::span<const Initcall> initcalls, std::string_view until)
      : initcalls_(initcalls), until_(until) {}

  // Takes the next event in the order of time. False: the boot has ended.
  bool Take(const CpuCursor& cursor) {
    const KernelEvent& event = cursor.event();
    const Tsc at = std::max(cursor.at(), boot_.end);
    if (boot_.cpus.empty()) {  // the first one
      boot_.lost_begin = cursor.after_loss();
      if (event.kind != KernelEventKind::kInitcallLevel) {
        BeginPhase("kernel start", at, /*is_level=*/false);
      }
      Follow(cursor.cpu(), at);
    } else if (cursor.after_loss()) {
      ++boot_.losses;
    }
    boot_.end = at;
    boot_.function_events.Add(cursor);
    switch (event.kind) {
      case KernelEventKind::kInitcallLevel:
        OnLevel(event, at);
        Follow(cursor.cpu(), at);
        break;
      case KernelEventKind::kInitcallStart:
        OnStart(event, at);
        if (event.current <= kInit) Follow(cursor.cpu(), at);
        break;
      case KernelEventKind::kInitcallFinish:
        OnFinish(event, at);
        if (event.current <= kInit) Follow(cursor.cpu(), at);
        break;
      case KernelEventKind::kSwitch:
        if (event.next == kInit) Follow(cursor.cpu(), at);
        break;
      case KernelEventKind::kExec:
        return OnExec(event, at);
      default:
        break;
    }
    return true;
  }

  absl::StatusOr<BootPhases> Finish(bool reached) {
    if (!has_initcalls_) {
      return NotFoundError("its kernel recorded no initcalls: boot it with {}",
                           "trace_event=initcall:*");
    }
    if (!until_.empty() && !reached) {
      return NotFoundError("no thread executed {} while it booted", until_);
    }
    EndLevels();
    for (BootInitcall& initcall : boot_.initcalls) {
      if (!initcall.finished) initcall.when.end = boot_.end;
    }
    return std::move(boot_);
  }

 private:
  void BeginPhase(std::string_view name, Tsc at, bool is_level) {
    if (boot_.phases.size() == BootPhases::kMaxPhases) return;
    boot_.phases.push_back({std::string(Name(name)), at, is_level});
  }

  void Follow(uint32_t cpu, Tsc at) {
    if (!boot_.cpus.empty() && boot_.cpus.back().cpu == cpu) return;
    if (boot_.cpus.size() < BootPhases::kMaxMoves) boot_.cpus.push_back({at, cpu});
  }

  // Ends a level at its last initcall, if the kernel does something else after it.
  void EndLevels() {
    const BootPhase& phase = boot_.phases.back();
    if (!phase.is_level || last_finish_ < phase.begin) return;
    BeginPhase("after " + phase.name, last_finish_, /*is_level=*/false);
  }

  void OnLevel(const KernelEvent& event, Tsc at) {
    has_initcalls_ = true;
    if (level_ == kConsole || level_ == kEarly) EndLevels();
    level_ = Name(event.name);
    BeginPhase(level_, at, /*is_level=*/true);
  }

  // Returns the initcall at the address, or null.
  [[nodiscard]] const Initcall* Find(Address address) const {
    const auto found = std::ranges::lower_bound(initcalls_, address, {}, &Initcall::address);
    return found == initcalls_.end() || found->address != address ? nullptr : &*found;
  }

  // Returns the level of the initcall, by those that its function's name has, or empty.
  [[nodiscard]] std::string_view LevelOf(const Initcall& initcall) const {
    for (const std::string& level : initcall.levels) {
      if (level_.empty() ? initcall.levels.size() == 1 : Covers(level_, level)) return level;
    }
    return {};
  }

  void OnStart(const KernelEvent& event, Tsc at) {
    has_initcalls_ = true;
    const Initcall* const known = Find(event.number);
    const bool by_boot = event.current <= kInit && !user_space_;
    if (known != nullptr && by_boot) {
      const std::string_view level = LevelOf(*known);
      if (!level.empty() && level != boot_.phases.back().name) {
        BeginPhase(level, at, /*is_level=*/true);
      }
    }
    if (boot_.initcalls.size() == BootPhases::kMaxInitcalls) {
      ++boot_.initcalls_left_out;
      return;
    }
    open_[event.current] = boot_.initcalls.size();
    boot_.initcalls.push_back({.address = event.number,
                               .function = known == nullptr ? "" : known->function,
                               .phase = boot_.phases.size() - 1,
                               .when = {at, at},
                               .by_boot = by_boot});
  }

  void OnFinish(const KernelEvent& event, Tsc at) {
    if (event.current <= kInit && !user_space_) last_finish_ = at;
    const auto open = open_.find(event.current);
    if (open == open_.end()) return;
    BootInitcall& initcall = boot_.initcalls[open->second];
    open_.erase(open);
    if (initcall.address != event.number) return;
    initcall.when.end = at;
    initcall.result = static_cast<int32_t>(event.state);
    initcall.finished = true;
  }

  bool OnExec(const KernelEvent& event, Tsc at) {
    if (event.thread == kInit && !user_space_) {
      EndLevels();
      BeginPhase(kUserSpace, at, /*is_level=*/false);
      user_space_ = true;
    }
    return until_.empty() || !IsProgram(event.name, until_);
  }

  std::span<const Initcall> initcalls_;
  std::string_view until_;
  BootPhases boot_;
  std::string level_;                           // of the last event that names one
  Tsc last_finish_;                             // of an initcall by the thread that boots
  absl::flat_hash_map<uint32_t, size_t> open_;  // initcalls, by thread
  bool has_initcalls_ = false;
  bool user_space_ = false;
};

}  // namespace

absl::StatusOr<BootPhases> FindBootPhases(const KernelTrace& trace, const EventClock& clock,
                                          std::span<const Initcall> initcalls,
                                          std::string_view until) {
  Finder finder(initcalls, until);
  KernelTraceFaults faults;
  const bool took_all = TakeEventsInOrder(
      trace, clock, faults, [&finder](const CpuCursor& cursor) { return finder.Take(cursor); });
  XENOSCOPE_ASSIGN_OR_RETURN(BootPhases boot, finder.Finish(/*reached=*/!took_all));
  boot.faults = faults;
  return boot;
}

}  // namespace xenoscope::guests
