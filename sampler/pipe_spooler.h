// A spooler copies what comes through a pipe into a file, so that a slow disk does not block the
// writer of the pipe:
//
//   from --(a thread)--> memory, up to a bound --(another)--> to
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes.h"

namespace xenoscope::sampler {

class PipeSpooler {
 public:
  static constexpr size_t kMaxQueuedBytes = size_t{256} << 20;

  // A function that sees all that comes, block by block, on the thread that reads.
  using Observer = std::function<void(Bytes)>;

  // Starts. `from` and `to` are open and must outlive the spooler; errors call `to` by `path`.
  // While more than `max_queued` bytes wait for `to`, the rest stays in the pipe.
  PipeSpooler(int from, int to, std::string path, size_t max_queued = kMaxQueuedBytes,
              Observer observer = {});
  PipeSpooler(const PipeSpooler&) = delete;
  PipeSpooler& operator=(const PipeSpooler&) = delete;
  // Waits until `from` is at its end and all is copied.
  ~PipeSpooler();

  // From now on reads all that comes, however much waits for `to`: for a writer that is about to
  // end.
  void LiftLimit();
  // Waits as the destructor does. Errors: those of status().
  absl::Status Finish();
  // Returns OK while all is well. After an error the rest is read and dropped.
  absl::Status status() const;
  // Returns the number of bytes that `to` has taken.
  [[nodiscard]] uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // Memory that is used again for block after block: new memory would have to be mapped and
  // cleared, page by page, which costs dom0 more than the copy.
  struct Block {
    std::unique_ptr<std::byte[]> memory;  // kBlockBytes
    size_t size = 0;
    [[nodiscard]] Bytes bytes() const { return {memory.get(), size}; }
  };

  void Read();
  void Write();
  // Returns an empty block: one that was written, or a new one.
  Block EmptyBlock();
  // Queues the block, or copies it into the last one of the queue where it has room, so that blocks
  // are half full or more on average. Leaves the block empty where it was copied.
  void Queue(Block& block);
  // Returns the next block to write when there is one; without memory: there is none any more.
  Block Next();

  const int from_;
  const int to_;
  const std::string path_;
  const Observer observer_;
  std::atomic<uint64_t> bytes_ = 0;
  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable more_;
  std::condition_variable room_;
  std::deque<Block> blocks_;
  std::vector<Block> empty_;  // blocks that were written, at most kMaxEmptyBlocks
  size_t max_queued_;
  size_t queued_ = 0;  // bytes in blocks_
  bool at_end_ = false;
  absl::Status status_;
  std::thread reader_;
  std::thread writer_;
};

}  // namespace xenoscope::sampler
