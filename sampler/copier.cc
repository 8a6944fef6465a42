#include "sampler/copier.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace xenoscope::sampler {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 20;  // a pipe holds no more
// What comes while the file is busy becomes one piece up to this size: fewer, longer writes.
constexpr size_t kPiece = size_t{1} << 20;

}  // namespace

Copier::Copier(int from, int to, std::string path, size_t most_waiting, Observer observer)
    : from_(from),
      to_(to),
      path_(std::move(path)),
      most_waiting_(most_waiting),
      observer_(std::move(observer)),
      reader_(&Copier::Read, this),
      writer_(&Copier::Write, this) {}

Copier::~Copier() { Finish().IgnoreError(); }

absl::Status Copier::Finish() {
  if (reader_.joinable()) reader_.join();
  if (writer_.joinable()) writer_.join();
  return status();
}

absl::Status Copier::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void Copier::Read() {
  std::vector<std::byte> buffer(kMostAtOnce);
  while (true) {
    const ssize_t n = read(from_, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (observer_) observer_({buffer.data(), static_cast<size_t>(n)});
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return waiting_ <= most_waiting_; });
    if (pieces_.empty() || pieces_.back().size() + static_cast<size_t>(n) > kPiece) {
      pieces_.emplace_back();
    }
    pieces_.back().insert(pieces_.back().end(), buffer.begin(), buffer.begin() + n);
    waiting_ += static_cast<size_t>(n);
    more_.notify_one();
  }
  const std::lock_guard lock(mutex_);
  at_end_ = true;
  more_.notify_one();
}

std::vector<std::byte> Copier::Next() {
  std::unique_lock lock(mutex_);
  more_.wait(lock, [this] { return !pieces_.empty() || at_end_; });
  if (pieces_.empty()) return {};
  std::vector<std::byte> piece = std::move(pieces_.front());
  pieces_.pop_front();
  waiting_ -= piece.size();
  room_.notify_one();
  return piece;
}

void Copier::Write() {
  int error = 0;
  while (true) {
    const std::vector<std::byte> piece = Next();
    if (piece.empty()) return;
    if (error != 0) continue;
    error = WriteAll(to_, piece);
    if (error == 0) {
      bytes_.fetch_add(piece.size(), std::memory_order_relaxed);
      continue;
    }
    const std::lock_guard lock(mutex_);
    status_ = WriteError(error, fmt::format("{} is kept up to there", path_));
  }
}

}  // namespace xenoscope::sampler
