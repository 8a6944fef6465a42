#include "trace/windows.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace xenoscope::trace {
namespace {

struct Header {
  uint32_t pcpu;
  uint32_t bytes;
};

std::optional<Header> HeaderAt(Bytes file, uint64_t offset) {
  if (Load<uint32_t>(file, offset) != kWindowHeaderWord) return std::nullopt;
  const auto pcpu = Load<uint32_t>(file, offset + 4);
  const auto bytes = Load<uint32_t>(file, offset + 8);
  if (!pcpu || !bytes || *pcpu >= kMaxPcpus) return std::nullopt;
  return Header{*pcpu, *bytes};
}

// Returns whether a window may end at `offset`: at the end of the file, which may be cut anywhere,
// or before another header.
bool EndsAtHeader(Bytes file, uint64_t offset) {
  return offset >= file.size() || file.size() - offset < kWindowHeaderBytes ||
         HeaderAt(file, offset).has_value();
}

// Returns the first offset at or after `from`, in steps of a word, with a header whose window ends
// well.
std::optional<uint64_t> NextValidHeader(Bytes file, uint64_t from) {
  for (uint64_t at = from; at + kWindowHeaderBytes <= file.size(); at += 4) {
    const auto header = HeaderAt(file, at);
    if (header && EndsAtHeader(file, at + kWindowHeaderBytes + header->bytes)) return at;
  }
  return std::nullopt;
}

class Indexer {
 public:
  explicit Indexer(Bytes file) : file_(file) {}

  WindowIndex Run() {
    uint64_t at = 0;
    while (at < file_.size()) at = Step(at);
    std::sort(index_.pcpus.begin(), index_.pcpus.end(),
              [](const PcpuWindows& a, const PcpuWindows& b) { return a.pcpu < b.pcpu; });
    return std::move(index_);
  }

 private:
  // Takes what stands at `at`; returns where the next thing starts.
  uint64_t Step(uint64_t at) {
    const uint64_t left = file_.size() - at;
    if (left < kWindowHeaderBytes) {
      AddDamage(DamageKind::kTruncated, at, left);
      return file_.size();
    }
    const auto header = HeaderAt(file_, at);
    if (!header) return Skip(at, at);
    const uint64_t begin = at + kWindowHeaderBytes;
    const uint64_t end = begin + header->bytes;
    index_.header_bytes += kWindowHeaderBytes;
    if (EndsAtHeader(file_, end)) {
      if (end > file_.size()) AddDamage(DamageKind::kTruncated, file_.size(), 0);
      Add(header->pcpu, {begin, std::min<uint64_t>(end, file_.size())});
      return std::min<uint64_t>(end, file_.size());
    }
    // There is no header behind the window: either its length is wrong, and the next header lies
    // inside, or the next header is damaged.
    const auto next = NextValidHeader(file_, begin);
    if (next && *next < end) {
      AddDamage(DamageKind::kNoWindow, end, 0);
      Add(header->pcpu, {begin, *next});
      return *next;
    }
    Add(header->pcpu, {begin, end});
    return Skip(end, end);
  }

  // Passes over bytes from `at` to the next good header at or after `from`.
  uint64_t Skip(uint64_t at, uint64_t from) {
    const uint64_t next = NextValidHeader(file_, from).value_or(file_.size());
    AddDamage(DamageKind::kNoWindow, at, next - at);
    return next;
  }

  void Add(uint32_t pcpu, Window window) {
    if (window.begin == window.end) return;
    if (pcpu >= slots_.size()) slots_.resize(pcpu + 1, -1);
    if (slots_[pcpu] < 0) {
      slots_[pcpu] = static_cast<int32_t>(index_.pcpus.size());
      index_.pcpus.push_back({PcpuId{pcpu}, {}});
    }
    index_.pcpus[static_cast<size_t>(slots_[pcpu])].windows.push_back(window);
  }

  void AddDamage(DamageKind kind, uint64_t offset, uint64_t bytes) {
    index_.damages.push_back({kind, offset, bytes});
  }

  Bytes file_;
  WindowIndex index_;
  std::vector<int32_t> slots_;  // pCPU -> place in index_.pcpus, -1 for none yet
};

}  // namespace

absl::StatusOr<WindowIndex> IndexWindows(Bytes file) {
  if (file.empty()) return InvalidError("the trace is empty (0 bytes)");
  WindowIndex index = Indexer(file).Run();
  if (index.pcpus.empty() && index.header_bytes == 0) {
    return InvalidError(
        "not a xentrace file: expected a CPU-change record (0x{:08x}) at byte 0, found 0x{:08x}, "
        "and none later",
        kWindowHeaderWord, Load<uint32_t>(file, 0).value_or(0));
  }
  return index;
}

}  // namespace xenoscope::trace
