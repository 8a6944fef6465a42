#include "sampler/xen/trace_losses.h"

#include <algorithm>

#include "trace/events.h"
#include "trace/record.h"
#include "trace/windows.h"

namespace xenoscope::sampler {
namespace {

constexpr size_t kWord = 4;

// TRC_LOST_RECORDS {u32 lost; u16 domain; u16 vCPU; u64 first TSC}, which has a TSC of its own
// (xen/include/public/trace.h and xen/common/trace.c, 4.17).
constexpr uint32_t kLostRecords =
    trace::FirstWord::Pack(IdOf(trace::Event::kLostRecords), 4, true).value;
constexpr size_t kTscAt = 4;
constexpr size_t kLostAt = 12;
constexpr size_t kFirstTscAt = 20;
// Limit of a loss's length; in a longer one (half an hour and more) one of its times is wrong.
constexpr Cycles kMaxLossCycles = Cycles{1} << 42;

}  // namespace

void TraceLosses::Take(Bytes bytes) {
  if (partial_bytes_ > 0) {
    const size_t more = std::min(bytes.size(), partial_.size() - partial_bytes_);
    std::copy_n(bytes.begin(), more, partial_.begin() + partial_bytes_);
    const size_t taken = TakeWhole({partial_.data(), partial_bytes_ + more});
    if (taken == 0) {
      partial_bytes_ += more;
      return;
    }
    bytes = bytes.subspan(taken - partial_bytes_);
    partial_bytes_ = 0;
  }
  const Bytes rest = bytes.subspan(TakeWhole(bytes));
  std::copy(rest.begin(), rest.end(), partial_.begin());
  partial_bytes_ = rest.size();
}

size_t TraceLosses::TakeWhole(Bytes bytes) {
  size_t at = 0;
  while (at < bytes.size() && !broken_) {
    if (skip_ == 0) at += PassRecords(bytes.subspan(at));
    const Bytes rest = bytes.subspan(at);
    size_t size = 0;
    if (skip_ > 0) {
      size = std::min<uint64_t>(skip_, rest.size());
      skip_ -= size;
    } else {
      size = left_ > 0 ? TakeOne(rest) : TakeWindow(rest);
    }
    if (size == 0 && skip_ == 0 && !broken_) return at;
    at += size;
  }
  return bytes.size();
}

size_t TraceLosses::PassRecords(Bytes bytes) {
  const size_t end = std::min<uint64_t>(left_, bytes.size());
  size_t at = 0;
  // No record is longer than what is left, so none needs a check of its size.
  while (end - at >= kMaxRecordBytes) {
    const auto word = LoadUnchecked<uint32_t>(bytes.data() + at);
    if (word == kLostRecords) break;
    at += trace::FirstWord{word}.SizeBytes();
  }
  left_ -= at;
  return at;
}

size_t TraceLosses::TakeWindow(Bytes bytes) {
  if (bytes.size() < trace::kWindowHeaderBytes) return 0;
  broken_ = LoadUnchecked<uint32_t>(bytes.data()) != trace::kWindowHeaderWord;
  left_ = LoadUnchecked<uint32_t>(bytes.data() + 2 * kWord);
  return trace::kWindowHeaderBytes;
}

size_t TraceLosses::TakeOne(Bytes bytes) {
  size_t size = left_;
  if (left_ >= kWord) {
    if (bytes.size() < kWord) return 0;
    size = trace::FirstWord{LoadUnchecked<uint32_t>(bytes.data())}.SizeBytes();
  }
  if (left_ < kWord || size > left_) {  // the end of the window is no record
    skip_ = left_;
    left_ = 0;
    return 0;
  }
  if (bytes.size() < size) return 0;
  if (LoadUnchecked<uint32_t>(bytes.data()) == kLostRecords) Count(bytes);
  left_ -= size;
  return size;
}

void TraceLosses::Count(Bytes record) {
  const auto resumed = LoadUnchecked<uint64_t>(record.data() + kTscAt);
  const auto first = LoadUnchecked<uint64_t>(record.data() + kFirstTscAt);
  records_.fetch_add(LoadUnchecked<uint32_t>(record.data() + kLostAt), std::memory_order_relaxed);
  if (first > resumed || resumed - first >= kMaxLossCycles) return;
  cycles_.fetch_add(resumed - first, std::memory_order_relaxed);
}

}  // namespace xenoscope::sampler
