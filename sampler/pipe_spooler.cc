#include "sampler/pipe_spooler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/file.h"

namespace xenoscope::sampler {
namespace {

// The bytes of a block: a quarter of a pipe, as much as a trace of 10 MB/s has in 25 ms.
constexpr size_t kBlockBytes = size_t{256} << 10;
// More are freed, so that a disk that stalled does not leave much memory behind.
constexpr size_t kMaxEmptyBlocks = 8;

}  // namespace

PipeSpooler::PipeSpooler(int from, int to, std::string path, size_t max_queued, Observer observer)
    : from_(from),
      to_(to),
      path_(std::move(path)),
      observer_(std::move(observer)),
      max_queued_(max_queued),
      reader_(&PipeSpooler::Read, this),
      writer_(&PipeSpooler::Write, this) {}

PipeSpooler::~PipeSpooler() { Finish().IgnoreError(); }

absl::Status PipeSpooler::Finish() {
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
  return status();
}

void PipeSpooler::LiftLimit() {
  const std::lock_guard lock(mutex_);
  max_queued_ = std::numeric_limits<size_t>::max();
  room_.notify_one();
}

absl::Status PipeSpooler::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void PipeSpooler::Read() {
  Block block;
  while (true) {
    if (block.memory == nullptr) block = EmptyBlock();
    const ssize_t n = read(from_, block.memory.get(), kBlockBytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    block.size = static_cast<size_t>(n);
    if (observer_) observer_(block.bytes());
    Queue(block);
  }
  const std::lock_guard lock(mutex_);
  at_end_ = true;
  more_.notify_one();
}

PipeSpooler::Block PipeSpooler::EmptyBlock() {
  {
    const std::lock_guard lock(mutex_);
    if (!empty_.empty()) {
      Block block = std::move(empty_.back());
      empty_.pop_back();
      return block;
    }
  }
  return {std::make_unique_for_overwrite<std::byte[]>(kBlockBytes), 0};
}

void PipeSpooler::Queue(Block& block) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return queued_ <= max_queued_; });
  queued_ += block.size;
  more_.notify_one();
  if (!blocks_.empty() && blocks_.back().size + block.size <= kBlockBytes) {
    Block& last = blocks_.back();
    std::memcpy(last.memory.get() + last.size, block.memory.get(), block.size);
    last.size += block.size;
    block.size = 0;
    return;
  }
  blocks_.push_back(std::move(block));
}

PipeSpooler::Block PipeSpooler::Next() {
  std::unique_lock lock(mutex_);
  more_.wait(lock, [this] { return !blocks_.empty() || at_end_; });
  if (blocks_.empty()) return {};
  Block block = std::move(blocks_.front());
  blocks_.pop_front();
  queued_ -= block.size;
  room_.notify_one();
  return block;
}

void PipeSpooler::Write() {
  int error = 0;
  while (true) {
    Block block = Next();
    if (block.memory == nullptr) return;
    if (error == 0) error = WriteAll(to_, block.bytes());
    const std::lock_guard lock(mutex_);
    if (error == 0) {
      bytes_.fetch_add(block.size, std::memory_order_relaxed);
    } else if (status_.ok()) {
      status_ = WriteError(error, fmt::format("{} is kept up to that point", path_));
    }
    block.size = 0;
    if (empty_.size() < kMaxEmptyBlocks) empty_.push_back(std::move(block));
  }
}

}  // namespace xenoscope::sampler
