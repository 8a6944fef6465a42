// Java virtual machines, which write their functions to /tmp/perf-PID.map only when they are asked
// to: HotSpot since Java 17, by its command Compiler.perfmap, as `jcmd PID Compiler.perfmap` asks.
//
// The way to ask is HotSpot's mechanism of attaching (attachListener_linux.cpp): where the socket
// /tmp/.java_pidPID is not there yet, an empty file /tmp/.attach_pidPID and SIGQUIT make the
// machine open it. All is done with the rights of the process's user and nothing more, and with
// names in its own /tmp.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// Asks a process for its file, and returns when it is written, at the latest at `until`: true.
// False: it does not run HotSpot, or does not catch SIGQUIT, which would end it. `process` is its
// directory in /proc. Errors: it has gone (NotFound); it does not answer in time
// (DeadlineExceeded); it refuses, as machines before Java 17 do (Unimplemented); its user's rights
// cannot be taken.
absl::StatusOr<bool> AskForPerfMap(const std::string& process, uint32_t pid,
                                   std::chrono::steady_clock::time_point until);

// The Java virtual machines among the processes that were added. Each is asked a second after that,
// and then again and again, after twice as long each time, up to a minute: it may end unseen.
class JavaVms {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  explicit JavaVms(std::string proc = "/proc") : proc_(std::move(proc)) {}

  void Add(uint32_t pid);
  // Asks those whose time has come; at `until` the others have to wait.
  void AskDue(Instant until);
  // Asks all of them once more, those last that did not answer; not those left at `until`.
  void AskAll(Instant until);
  // Returns which machines never wrote their functions, and why.
  [[nodiscard]] std::vector<std::string> Notes() const;

 private:
  struct Schedule {
    Instant next;
    std::chrono::seconds interval{1};
    absl::Status asked;  // the last time
    bool has_answered = false;
  };

  void Ask(uint32_t pid, Schedule& schedule, Instant until);

  const std::string proc_;
  absl::flat_hash_map<uint32_t, Schedule> processes_;
};

}  // namespace xenoscope::sampler
