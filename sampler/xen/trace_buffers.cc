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
#include <xencall.h>
#include <xenevtchn.h>
#include <xenforeignmemory.h>
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
#include "base/hypercalls.h"
#include "base/ids.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {
namespace {

// The part of __HYPERVISOR_sysctl that is used here (xen/include/public/sysctl.h, Xen 4.8 to 4.22):
// a version that changes from release to release, and a layout that has not changed.
constexpr uint32_t kTbufOp = 2;
constexpr uint32_t kTbufGetInfo = 0;
constexpr uint32_t kTbufDisable = 5;
constexpr uint32_t kFirstVersion = 0x0e;  // XEN_SYSCTL_INTERFACE_VERSION of Xen 4.8
constexpr uint32_t kLastVersion = 0x3f;
struct TbufSysctl {
  uint32_t op;
  uint32_t version;
  uint32_t tbuf_command;
  uint32_t padding;
  uint64_t cpu_mask[2];
  uint32_t event_mask;
  uint32_t padding1;
  uint64_t info_frame;  // out: frame of struct t_info; 0: there are no buffers
  uint32_t info_size;   // out: size of struct t_info in bytes
  uint32_t rest[21];
};
static_assert(sizeof(TbufSysctl) == 8 + 128 && offsetof(TbufSysctl, info_frame) == 40);

constexpr size_t kPageSize = 4096;
constexpr uint32_t kMaxInfoBytes = 1U << 20;
constexpr std::chrono::milliseconds kInfoPollInterval{100};

// Returns whether Xen's notifications of records have a listener: they are one interrupt, which one
// listener can have. Nothing where that cannot be known.
std::optional<bool> HasListener() {
  const std::unique_ptr<xenevtchn_handle, int (*)(xenevtchn_handle*)> events(
      xenevtchn_open(nullptr, 0), xenevtchn_close);
  if (events == nullptr) return std::nullopt;
  if (xenevtchn_bind_virq(events.get(), VIRQ_TBUF) >= 0) return false;
  return errno == EEXIST ? std::optional(true) : std::nullopt;
}

// Returns Xen's answer to a command; its op is 0 on failure.
TbufSysctl CallTrace(uint32_t command) {
  TbufSysctl answer{};
  const std::unique_ptr<xencall_handle, int (*)(xencall_handle*)> calls(xencall_open(nullptr, 0),
                                                                        xencall_close);
  if (calls == nullptr) return answer;
  auto* const op = static_cast<TbufSysctl*>(xencall_alloc_buffer(calls.get(), sizeof(TbufSysctl)));
  if (op == nullptr) return answer;
  for (uint32_t version = kFirstVersion; version <= kLastVersion; ++version) {
    *op = {};
    op->op = kTbufOp;
    op->version = version;
    op->tbuf_command = command;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    const auto address = reinterpret_cast<uint64_t>(op);
    // Xen checks the version first, and refuses all but its own.
    const bool taken = xencall1(calls.get(), hypercall::kSysctl, address) >= 0;
    if (taken) answer = *op;
    if (taken || errno != EACCES) break;
  }
  xencall_free_buffer(calls.get(), op);
  return answer;
}

// Mapped pages of Xen.
class XenPages {
 public:
  XenPages(xenforeignmemory_handle* memory, int protection, uint64_t frame, size_t count)
      : memory_(memory), count_(count) {
    if (count == 0) return;
    std::vector<xen_pfn_t> frames(count);
    std::iota(frames.begin(), frames.end(), frame);
    std::vector<int> errors(count);
    at_ = xenforeignmemory_map(memory, kDomXen.value, protection, count, frames.data(),
                               errors.data());
    const bool good = std::ranges::all_of(errors, [](int error) { return error == 0; });
    if (at_ != nullptr && !good) Unmap();
  }
  XenPages(const XenPages&) = delete;
  XenPages& operator=(const XenPages&) = delete;
  ~XenPages() { Unmap(); }

  // Returns the pages; empty where there are none or they could not be mapped.
  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(at_), at_ == nullptr ? 0 : count_ * kPageSize};
  }

 private:
  void Unmap() {
    if (at_ != nullptr) xenforeignmemory_unmap(memory_, at_, count_);
    at_ = nullptr;
  }

  xenforeignmemory_handle* memory_;
  size_t count_;
  void* at_ = nullptr;
};

// Maps struct t_info: the pages of a buffer, and for each pCPU the offset of its list of frames, in
// words of 4 bytes; 0: it has none.
XenPages MapInfo(xenforeignmemory_handle* memory, const TbufSysctl& info) {
  const bool plausible =
      info.info_frame != 0 && info.info_size >= kPageSize && info.info_size <= kMaxInfoBytes;
  return {memory, PROT_READ, info.info_frame, plausible ? info.info_size / kPageSize : 0};
}
uint32_t BufferPages(const XenPages& info) { return Load<uint16_t>(info.bytes(), 0).value_or(0); }

// Hands the first page of each buffer, which has its state, to `take`. Returns the size of each
// buffer in bytes; 0: there are none.
uint32_t ForEachBuffer(const TbufSysctl& info, int protection,
                       const std::function<void(std::span<std::byte>)>& take) {
  const std::unique_ptr<xenforeignmemory_handle, int (*)(xenforeignmemory_handle*)> memory(
      xenforeignmemory_open(nullptr, 0), xenforeignmemory_close);
  const absl::StatusOr<std::vector<uint32_t>> pcpus = OnlineApicIds();
  if (memory == nullptr || !pcpus.ok()) return 0;
  const XenPages pages = MapInfo(memory.get(), info);
  const uint32_t buffer_pages = BufferPages(pages);
  if (buffer_pages == 0) return 0;
  for (size_t i = 0; i < pcpus->size(); ++i) {
    const uint64_t list = Load<uint16_t>(pages.bytes(), 2 + 2 * i).value_or(0);
    const auto frame = Load<uint32_t>(pages.bytes(), 4 * list);
    if (list == 0 || !frame) continue;
    const XenPages buffer(memory.get(), protection, *frame, 1);
    if (!buffer.bytes().empty()) take(buffer.bytes());
  }
  return static_cast<uint32_t>(buffer_pages * kPageSize - sizeof(TraceBufferState));
}

// Returns the buffers' states now; sets `room` to the size of each in bytes.
std::vector<TraceBufferState> ReadBufferStates(const TbufSysctl& info, uint32_t& room) {
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
  const std::unique_ptr<xenforeignmemory_handle, int (*)(xenforeignmemory_handle*)> memory(
      xenforeignmemory_open(nullptr, 0), xenforeignmemory_close);
  if (memory == nullptr) return std::nullopt;
  const uint32_t pages = BufferPages(MapInfo(memory.get(), CallTrace(kTbufGetInfo)));
  return pages == 0 ? std::nullopt : std::optional(pages);
}

bool IsTraceStale() {
  if (HasListener().value_or(true)) return false;
  const TbufSysctl info = CallTrace(kTbufGetInfo);
  uint32_t room = 0;
  const std::vector<TraceBufferState> before = ReadBufferStates(info, room);
  if (before.empty()) return false;
  std::this_thread::sleep_for(kInfoPollInterval);
  return IsBeingWritten(before, ReadBufferStates(info, room), room);
}

void PauseTrace() { CallTrace(kTbufDisable); }

void StopStaleTrace() {
  if (HasListener().value_or(true)) return;
  CallTrace(kTbufDisable);
  ForEachBuffer(CallTrace(kTbufGetInfo), PROT_READ | PROT_WRITE, Empty);
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
