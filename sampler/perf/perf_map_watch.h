// Keeps the functions that JIT compilers write to /tmp/perf-PID.map while a recording is made. When
// a process has ended, its file may be removed, or be in the /tmp of a container that has ended
// with it. So the file of each process that runs code of no file is kept open from soon after it
// was made, and is read once, however often it grows: when the process ends, when the file is
// removed, or when the recording ends.
//
//   Add --> waiting --it has a file--> open --it ends, or the file is removed--> kept
//
// The looks are on a thread of their own, as a file system may be slow, and a drain waits for
// nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "sampler/perf/java_vm.h"
#include "sampler/perf/jit_and_vdso.h"

namespace xenoscope::sampler {

class PerfMapWatch {
 public:
  // Processes are those in `proc`; files of processes that ended unseen are in `tmp`.
  explicit PerfMapWatch(std::string proc = "/proc", std::string tmp = "/tmp",
                        size_t max_bytes = kMaxPerfMapBytes);
  PerfMapWatch(const PerfMapWatch&) = delete;
  PerfMapWatch& operator=(const PerfMapWatch&) = delete;
  ~PerfMapWatch() { Stop(); }

  // Also asks Java virtual machines for their functions from now on (sampler/perf/java_vm.h).
  void AskJavaVms();
  // Asks all of these once more, for two seconds at most.
  void AskJavaVmsAgain();
  // Returns which of these wrote no functions, and why.
  [[nodiscard]] std::vector<std::string> Notes();
  // Looks from now on, five times a second, but for a hundredth of the time at most.
  void Start();
  void Stop();
  // Adds a process that may have such a file. Never waits for a look.
  void Add(uint32_t pid);
  // Opens the files that are there by now, and reads those that will not be there later.
  void Look();
  // Returns the functions of processes that were added, if there are others than at the last call:
  // a text of PerfMapText. Reads files that are open already, for a thousandth of the time at most,
  // and never waits for a look.
  std::optional<std::string> ReadNew();
  // Returns the functions that came since the last call, a text of PerfMapText of a megabyte at
  // most; nothing if there are none. Reads as ReadNew does. From the first call on, it also has
  // those of processes that ended meanwhile.
  std::optional<std::string> ReadGrown();
  // Returns the functions that were kept, those of all running processes, and those in `tmp` of
  // processes that have ended, if the file's owner could read them: a text of PerfMapText.
  std::string Read();

 private:
  struct OpenMap {
    uint32_t pid = 0;
    PerfMapFile file;
    PerfMapPlace given;  // what ReadGrown returned of it
  };

  void Run();
  void AskDueJavaVms();
  void TakeAdded();
  // Keeps the functions of open files that will not be there later. Returns whether this is one.
  bool KeepIfOver(OpenMap& open);
  // Opens the process's file. Returns whether there is nothing to wait for any more.
  bool OpenIfThere(uint32_t pid);
  void LookWithLock();
  // Returns a number that changes when what is kept or open does.
  [[nodiscard]] size_t Version() const;
  // Adds what is kept and what is open.
  void AddWatched(PerfMapText& text) const;
  void AddRunning(PerfMapText& text, absl::flat_hash_set<uint32_t>& pids) const;
  // Adds the files in tmp_ of other processes than these.
  void AddEnded(PerfMapText& text, const absl::flat_hash_set<uint32_t>& pids) const;

  const std::string proc_;
  const std::string tmp_;
  const size_t max_bytes_;

  std::mutex looking_;  // guards what a look changes, up to kept_
  absl::flat_hash_set<uint32_t> waiting_;
  std::vector<OpenMap> open_;
  absl::flat_hash_set<uint32_t> ended_;  // processes whose files were kept when they had ended
  PerfMapText kept_;
  std::optional<JavaVms> java_vms_;
  size_t version_ = 0;                               // what ReadNew returned
  std::chrono::steady_clock::time_point next_read_;  // time from which on ReadNew reads again
  bool gives_grown_ = false;                         // ReadGrown is called
  std::string ended_grown_;  // what ReadGrown will return of processes that ended
  std::chrono::steady_clock::time_point next_grown_;

  std::mutex mutex_;  // guards all members below; never held for long
  std::condition_variable wake_;
  absl::flat_hash_set<uint32_t> added_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace xenoscope::sampler
