#include "sampler/pipe_spooler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "base/file.h"

namespace xenoscope::sampler {
namespace {

constexpr size_t kMaxReadSize = size_t{1} << 20;  // capacity of a pipe
// Limit of a block: what comes while the file is busy is written at once.
constexpr size_t kBlockSize = size_t{1} << 20;

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
  std::vector<std::byte> buffer(kMaxReadSize);
  while (true) {
    const ssize_t n = read(from_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (observer_) observer_({buffer.data(), static_cast<size_t>(n)});
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return queued_ <= max_queued_; });
    if (blocks_.empty() || blocks_.back().size() + static_cast<size_t>(n) > kBlockSize) {
      blocks_.emplace_back();
    }
    blocks_.back().insert(blocks_.back().end(), buffer.begin(), buffer.begin() + n);
    queued_ += static_cast<size_t>(n);
    more_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  at_end_ = true;
  more_.notify_one();
}

std::vector<std::byte> PipeSpooler::Next() {
  std::unique_lock lock(mutex_);
  more_.wait(lock, [this] { return !blocks_.empty() || at_end_; });
  if (blocks_.empty()) return {};
  std::vector<std::byte> block = std::move(blocks_.front());
  blocks_.pop_front();
  queued_ -= block.size();
  room_.notify_one();
  return block;
}

void PipeSpooler::Write() {
  int error = 0;
  while (true) {
    const std::vector<std::byte> block = Next();
    if (block.empty()) return;
    if (error != 0) continue;
    error = WriteAll(to_, block);
    if (error == 0) {
      bytes_.fetch_add(block.size(), std::memory_order_relaxed);
      continue;
    }
    const std::lock_guard lock(mutex_);
    status_ = WriteError(error, fmt::format("{} is kept up to that point", path_));
  }
}

}  // namespace xenoscope::sampler
