#include "sampler/xen/trace_buffers.h"

#include <algorithm>
#include <cstddef>

namespace xenoscope::sampler {

bool IsBeingWritten(std::span<const TraceBufferState> before,
                    std::span<const TraceBufferState> after, uint32_t room) {
  constexpr uint32_t kMinRoom = 256;  // bytes for a record (at most 40) and padding
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const auto [cons, prod] = after[i];
    if (uint64_t{cons} >= uint64_t{2} * room || uint64_t{prod} >= uint64_t{2} * room) continue;
    const uint64_t used = prod >= cons ? prod - cons : uint64_t{2} * room + prod - cons;
    if (used > room) continue;
    if (prod != before[i].prod || room - used < kMinRoom) return true;
  }
  return false;
}

}  // namespace xenoscope::sampler

#ifdef XENOSCOPE_HAVE_XEN

#include <sys/mman.h>
extern "C" {  // Xen's headers lack it
#include <xen/xen.h>
#include <xenevtchn.h>
}

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/shared_library.h"
#include "sampler/xen/foreign_memory.h"
#include "sampler/xen/host.h"
#include "sampler/xen/sysctl_handle.h"

namespace xenoscope::sampler {
namespace {

constexpr size_t kPageSize = 4096;
constexpr uint32_t kMaxInfoBytes = 1U << 20;
constexpr std::chrono::milliseconds kInfoPollInterval{100};

// Returns whether Xen's notifications of records have a listener: they are one interrupt, which one
// listener can have. Nothing where that cannot be known.
std::optional<bool> HasListener() {
  const auto library = SharedLibrary::Load("libxenevtchn.so.1", "event channels");
  decltype(&xenevtchn_open) open = nullptr;
  decltype(&xenevtchn_close) close = nullptr;
  decltype(&xenevtchn_bind_virq) bind_virq = nullptr;
  if (!library.ok()) return std::nullopt;
  const absl::Status found = library->Find("xenevtchn_open", open, "xenevtchn_close", close,
                                           "xenevtchn_bind_virq", bind_virq);
  if (!found.ok()) return std::nullopt;
  const std::unique_ptr<xenevtchn_handle, decltype(close)> events(open(nullptr, 0), close);
  if (events == nullptr) return std::nullopt;
  if (bind_virq(events.get(), VIRQ_TBUF) >= 0) return false;
  return errno == EEXIST ? std::optional(true) : std::nullopt;
}

// Gives Xen a command. Returns its answer; that of a Xen without buffers where it does not answer.
SysctlTraceBuffers CallTrace(uint32_t command) {
  const auto calls = SysctlHandle::Open("control its trace buffers");
  if (!calls.ok()) return {};
  SysctlTraceBuffers& argument = (*calls)->Prepare(SysctlOp::kTraceBuffers).u.trace_buffers;
  argument.command = command;
  return (*calls)->Call() == 0 ? argument : SysctlTraceBuffers{};
}

// Mapped pages of Xen.
class XenPages {
 public:
  XenPages(ForeignMemory& memory, int protection, uint64_t frame, size_t count)
      : memory_(memory), count_(count) {
    if (count == 0) return;
    std::vector<uint64_t> frames(count);
    std::iota(frames.begin(), frames.end(), frame);
    at_ = memory.Map(kDomXen, protection, frames);
  }
  XenPages(const XenPages&) = delete;
  XenPages& operator=(const XenPages&) = delete;
  ~XenPages() {
    if (at_ != nullptr) memory_.Unmap(at_, count_);
  }

  // Returns the pages; empty where there are none or they could not be mapped.
  std::span<std::byte> bytes() const { return {at_, at_ == nullptr ? 0 : count_ * kPageSize}; }

 private:
  ForeignMemory& memory_;
  size_t count_;
  std::byte* at_ = nullptr;
};

// Maps struct t_info: the pages of a buffer, and for each pCPU the offset of its list of frames, in
// words of 4 bytes; 0: it has none.
XenPages MapInfo(ForeignMemory& memory, const SysctlTraceBuffers& info) {
  const bool plausible =
      info.info_frame != 0 && info.info_size >= kPageSize && info.info_size <= kMaxInfoBytes;
  return {memory, PROT_READ, info.info_frame, plausible ? info.info_size / kPageSize : 0};
}
uint32_t BufferPages(const XenPages& info) { return Load<uint16_t>(info.bytes(), 0).value_or(0); }

// Hands the first page of each buffer, which has its state, to `take`. Returns the size of each
// buffer in bytes; 0: there are none.
uint32_t ForEachBuffer(const SysctlTraceBuffers& info, int protection,
                       const std::function<void(std::span<std::byte>)>& take) {
  const auto memory = ForeignMemory::Open();
  const absl::StatusOr<std::vector<uint32_t>> pcpus = OnlineApicIds();
  if (!memory.ok() || !pcpus.ok()) return 0;
  const XenPages pages = MapInfo(**memory, info);
  const uint32_t buffer_pages = BufferPages(pages);
  if (buffer_pages == 0) return 0;
  for (size_t i = 0; i < pcpus->size(); ++i) {
    const uint64_t list = Load<uint16_t>(pages.bytes(), 2 + 2 * i).value_or(0);
    const auto frame = Load<uint32_t>(pages.bytes(), 4 * list);
    if (list == 0 || !frame) continue;
    const XenPages buffer(**memory, protection, *frame, 1);
    if (!buffer.bytes().empty()) take(buffer.bytes());
  }
  return static_cast<uint32_t>(buffer_pages * kPageSize - sizeof(TraceBufferState));
}

// Returns the buffers' states now; sets `room` to the size of each in bytes.
std::vector<TraceBufferState> ReadBufferStates(const SysctlTraceBuffers& info, uint32_t& room) {
  std::vector<TraceBufferState> states;
  room = ForEachBuffer(info, PROT_READ, [&states](Bytes page) {
    states.push_back(LoadUnchecked<TraceBufferState>(page.data()));
  });
  return states;
}

// Discards what is there.
void Empty(std::span<std::byte> page) {
  auto state = LoadUnchecked<TraceBufferState>(page.data());
  state.cons = state.prod;
  std::memcpy(page.data() + offsetof(TraceBufferState, cons), &state.cons, sizeof state.cons);
}

}  // namespace

bool HasTraceConsumer() { return HasListener().value_or(false); }

std::optional<uint32_t> TraceBufferPages() {
  const auto memory = ForeignMemory::Open();
  if (!memory.ok()) return std::nullopt;
  const uint32_t pages = BufferPages(MapInfo(**memory, CallTrace(kTraceBuffersGetInfo)));
  return pages == 0 ? std::nullopt : std::optional(pages);
}

bool IsTraceStale() {
  if (HasListener().value_or(true)) return false;
  const SysctlTraceBuffers info = CallTrace(kTraceBuffersGetInfo);
  uint32_t room = 0;
  const std::vector<TraceBufferState> before = ReadBufferStates(info, room);
  if (before.empty()) return false;
  std::this_thread::sleep_for(kInfoPollInterval);
  return IsBeingWritten(before, ReadBufferStates(info, room), room);
}

void PauseTrace() { CallTrace(kTraceBuffersDisable); }

void StopStaleTrace() {
  if (HasListener().value_or(true)) return;
  CallTrace(kTraceBuffersDisable);
  ForEachBuffer(CallTrace(kTraceBuffersGetInfo), PROT_READ | PROT_WRITE, Empty);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {
bool HasTraceConsumer() { return false; }
std::optional<uint32_t> TraceBufferPages() { return std::nullopt; }
bool IsTraceStale() { return false; }
void PauseTrace() {}
void StopStaleTrace() {}
}  // namespace xenoscope::sampler

#endif
