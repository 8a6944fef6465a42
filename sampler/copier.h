// Copies what comes through a pipe into a file, so that a disk that stalls does not hold up who
// writes into the pipe:
//
//   from --(a thread)--> memory, up to a bound --(another)--> to
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope::sampler {

class Copier {
 public:
  static constexpr size_t kMostWaiting = size_t{256} << 20;

  // Sees all that comes, piece by piece, on the thread that reads.
  using Observer = std::function<void(Bytes)>;

  // Begins. `from` and `to` are open and outlive it; `path` is what `to` is called in errors. When
  // more than `most_waiting` bytes wait for `to`, what comes stays in the pipe.
  Copier(int from, int to, std::string path, size_t most_waiting = kMostWaiting,
         Observer observer = {});
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  // Waits until `from` is at its end, and all is copied.
  ~Copier();

  // Waits likewise. Errors: those of status().
  absl::Status Finish();
  // OK while all is well. After an error what comes is swallowed.
  absl::Status status() const;
  // That `to` has taken.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  void Read();
  void Write();
  // The next piece to write, as soon as there is one; empty: there is none any more.
  std::vector<std::byte> Next();

  const int from_;
  const int to_;
  const std::string path_;
  const size_t most_waiting_;
  const Observer observer_;
  std::atomic<uint64_t> bytes_ = 0;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable more_;
  std::condition_variable room_;
  std::deque<std::vector<std::byte>> pieces_;
  size_t waiting_ = 0;  // bytes, in pieces_
  bool at_end_ = false;
  absl::Status status_;
  std::thread reader_;
  std::thread writer_;
};

}  // namespace xenoscope::sampler
