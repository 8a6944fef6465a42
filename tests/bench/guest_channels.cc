// What the ways out of a guest carry and cost, for `scripts/bench channels`.
//
//   guest_channels guest                    in the guest: does what dom0 asks for, until dom0
//   closes the channel guest_channels dom0 DOMID WAY [SIZE]    in dom0: measures one way once
//
// WAY is vchan (messages of SIZE bytes through our agent's channel), mark (hypercalls of
// HVMOP_xentrace, with 16 bytes of text each) or memory (dom0 reads the guest's pages, SIZE of them
// with one mapping). The result is a line on stdout: WAY, SIZE, messages, bytes, ns from the first
// to the last of them, ns in which the guest's vCPUs ran for them.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/mark/xenoscope_mark.h"
#include "sampler/vcpu/guest_pages.h"
#include "sampler/vcpu/vcpu_calls.h"
#include "sampler/xen/foreign_memory.h"

namespace {

using namespace xenoscope;  // NOLINT(google-build-using-namespace): a program of its own
using sampler::Channel;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr size_t kPages = 256;  // of the guest's memory that dom0 reads
constexpr size_t kMarkText = 16;
constexpr std::chrono::seconds kPatience(300);

[[noreturn]] void Fail(std::string_view why) {
  fmt::print(stderr, "guest_channels: {}\n", why);
  std::exit(1);
}

template <typename Value>
Value OrFail(absl::StatusOr<Value> value) {
  if (!value.ok()) Fail(Message(value.status()));
  return *std::move(value);
}

enum class Task : uint64_t { kSend, kMark, kWork };

// What dom0 asks a guest for: `count` messages of `size` bytes, marks, or rounds of work.
struct Order {
  Task task = Task::kWork;
  uint64_t size = 0;
  uint64_t count = 0;
};

template <typename Value>
std::span<std::byte> BytesOf(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void SendAll(Channel& channel, Bytes bytes) {
  while (!bytes.empty()) {
    const size_t sent = OrFail(channel.Send(bytes));
    bytes = bytes.subspan(sent);
    if (sent == 0) channel.Wait(true, steady_clock::now() + kPatience, sampler::kNoFile);
  }
}

// Returns false: the peer has closed the channel.
bool ReceiveAll(Channel& channel, std::span<std::byte> into) {
  while (!into.empty()) {
    const absl::StatusOr<size_t> received = channel.Receive(into);
    if (!received.ok()) return false;
    into = into.subspan(*received);
    if (*received == 0) channel.Wait(false, steady_clock::now() + kPatience, sampler::kNoFile);
  }
  return true;
}

// ---- in the guest

void SendMessages(Channel& channel, const Order& order) {
  const std::vector<std::byte> message(order.size);
  for (uint64_t i = 0; i < order.count; ++i) SendAll(channel, message);
}

void WriteMarks(const Order& order) {
  const int marks = xenoscope_mark_open();
  if (marks < 0) Fail("cannot open /dev/xen/privcmd");
  for (uint64_t i = 0; i < order.count; ++i) {
    if (xenoscope_mark(marks, XENOSCOPE_MARK_INSTANT, "sixteen letters.") != 0) {
      Fail("this kernel lets no program make hypercalls");
    }
  }
}

void Work(const Order& order) {
  for (volatile uint64_t round = 0; round < order.count;) round = round + 1;
}

// Makes memory that stays where it is, and has a word that dom0 knows at the begin of each page.
std::byte* MakePages() {
  void* const pages = mmap(nullptr, kPages * sampler::kFrameSize, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_LOCKED, -1, 0);
  if (pages == MAP_FAILED) Fail("no memory");
  auto* const bytes = static_cast<std::byte*>(pages);
  for (size_t page = 0; page < kPages; ++page) bytes[page * sampler::kFrameSize] = std::byte{1};
  return bytes;
}

// Serves dom0: says where the pages are, and then does each order. Messages are their own answer.
void Serve() {
  const std::unique_ptr<Channel> channel = OrFail(sampler::OfferVchan(DomainId{0}));
  std::byte* pages = MakePages();
  SendAll(*channel, BytesOf(pages));
  Order order;
  while (ReceiveAll(*channel, BytesOf(order))) {
    switch (order.task) {
      case Task::kSend:
        SendMessages(*channel, order);
        continue;
      case Task::kMark:
        WriteMarks(order);
        break;
      case Task::kWork:
        Work(order);
        break;
    }
    SendAll(*channel, BytesOf(order.count));
  }
}

// ---- in dom0

struct Result {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  nanoseconds elapsed{};
  int64_t guest_ns = 0;  // in which its vCPU ran
};

// Waits until the guest offers its channel: it does so anew after each measurement.
std::unique_ptr<Channel> Connect(DomainId domain) {
  constexpr int kAttempts = 100;
  constexpr std::chrono::milliseconds kPause(200);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (auto channel = sampler::ConnectVchan(domain); channel.ok()) return *std::move(channel);
    std::this_thread::sleep_for(kPause);
  }
  return OrFail(sampler::ConnectVchan(domain));
}

class Guest {
 public:
  explicit Guest(DomainId domain)
      : vcpu_{domain, VcpuId{0}},
        calls_(OrFail(sampler::OpenVcpuCalls())),
        channel_(Connect(domain)) {
    if (!ReceiveAll(*channel_, BytesOf(pages_))) Fail("the guest has gone");
  }

  Result Send(uint64_t size, uint64_t count) {
    std::vector<std::byte> messages(std::max<uint64_t>(size, 1 << 16));
    return Measure({Task::kSend, size, count}, count, size * count, [&] {
      for (uint64_t left = size * count; left > 0;) {
        const uint64_t part = std::min<uint64_t>(left, messages.size());
        if (!ReceiveAll(*channel_, std::span(messages).first(part))) Fail("the guest has gone");
        left -= part;
      }
    });
  }

  Result Mark(uint64_t count) {
    return Measure({Task::kMark, kMarkText, count}, count, kMarkText * count, [&] { Answer(); });
  }

  // Reads the guest's pages while it computes, `batch` of them with one mapping. What the guest
  // pays is the time that the same work takes longer.
  Result Read(uint64_t batch) {
    const std::vector<uint64_t> frames = Frames();
    const Order work{Task::kWork, 0, kRounds};
    const Result alone = Measure(work, 0, 0, [&] { Answer(); });
    uint64_t read = 0;
    nanoseconds reading{};
    Result both = Measure(work, 0, 0, [&] {
      const steady_clock::time_point begin = steady_clock::now();
      for (int pass = 0; pass < kPasses; ++pass) read += ReadOnce(frames, batch);
      reading = steady_clock::now() - begin;
      Answer();
    });
    both.messages = read / sampler::kFrameSize;
    both.bytes = read;
    both.elapsed = reading;
    both.guest_ns -= alone.guest_ns;
    return both;
  }

 private:
  static constexpr uint64_t kRounds = 100'000'000;
  static constexpr int kPasses = 16;

  void Answer() {
    uint64_t count = 0;
    if (!ReceiveAll(*channel_, BytesOf(count))) Fail("the guest has gone");
  }

  [[nodiscard]] uint64_t RanNs() const {
    sampler::VcpuState state;
    if (calls_->State(vcpu_, state) != 0) Fail("Xen does not say how long the guest ran");
    return state.ran_ns;
  }

  template <typename Wait>
  Result Measure(Order order, uint64_t messages, uint64_t bytes, Wait wait) {
    const uint64_t ran = RanNs();
    const steady_clock::time_point begin = steady_clock::now();
    SendAll(*channel_, BytesOf(order));
    wait();
    const steady_clock::time_point end = steady_clock::now();
    return {messages, bytes, end - begin, static_cast<int64_t>(RanNs() - ran)};
  }

  // Returns where the pages are, by the page tables of the guest's program, which works meanwhile.
  std::vector<uint64_t> Frames() {
    Order work{Task::kWork, 0, kRounds};
    SendAll(*channel_, BytesOf(work));
    sampler::MappedFrames mapped(OrFail(sampler::OpenGuestMemory()));
    sampler::GuestPages tables(mapped);
    std::vector<uint64_t> frames;
    const steady_clock::time_point until = steady_clock::now() + kPatience;
    while (frames.size() < kPages && steady_clock::now() < until) {
      sampler::VcpuContext context;
      if (calls_->Context(vcpu_, context) != 0) Fail("Xen does not give the vCPU's registers");
      tables.Begin(vcpu_.domain, context, kPages);
      const auto page = tables.At(AddressOfPage(frames.size()));
      if (page.present) frames.push_back(page.frame);
    }
    if (frames.size() < kPages) Fail("the guest's program was never seen");
    Answer();
    return frames;
  }

  [[nodiscard]] Address AddressOfPage(size_t page) const {
    return pages_ + page * sampler::kFrameSize;
  }

  uint64_t ReadOnce(std::span<const uint64_t> frames, uint64_t batch) {
    std::array<std::byte, sampler::kFrameSize> copy{};
    uint64_t read = 0;
    for (; !frames.empty(); frames = frames.subspan(std::min<size_t>(batch, frames.size()))) {
      const std::span<const uint64_t> part = frames.first(std::min<size_t>(batch, frames.size()));
      const std::byte* const pages = memory_->Map(vcpu_.domain, PROT_READ, part);
      if (pages == nullptr) Fail("Xen does not map the guest's pages");
      for (size_t page = 0; page < part.size(); ++page) {
        std::copy_n(pages + page * copy.size(), copy.size(), copy.begin());
        if (copy[0] != std::byte{1}) Fail("these are not the guest's pages");
        read += copy.size();
      }
      memory_->Unmap(pages, part.size());
    }
    return read;
  }

  VcpuRef vcpu_;
  std::unique_ptr<sampler::VcpuCalls> calls_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<sampler::ForeignMemory> memory_ = OrFail(sampler::ForeignMemory::Open());
  Address pages_ = 0;
};

uint64_t Number(std::string_view text) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || parsed.ptr != text.data() + text.size()) Fail("not a number");
  return number;
}

Result MeasureWay(Guest& guest, std::string_view way, uint64_t size) {
  constexpr uint64_t kMarks = 5'000;
  constexpr uint64_t kMostMessages = 20'000;
  constexpr uint64_t kMostBytes = uint64_t{16} << 20;
  if (way == "mark") return guest.Mark(kMarks);
  if (size == 0) Fail("give a size");
  if (way == "vchan") return guest.Send(size, std::min(kMostMessages, kMostBytes / size));
  if (way == "memory") return guest.Read(size);
  Fail("the ways are vchan, mark and memory");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "guest") {
    Serve();
    return 0;
  }
  if (words.size() < 3 || words.size() > 4 || words[0] != "dom0") {
    Fail("guest, or dom0 DOMID WAY [SIZE]");
  }
  Guest guest(DomainId{static_cast<uint16_t>(Number(words[1]))});
  const uint64_t size = words.size() == 4 ? Number(words[3]) : kMarkText;
  const Result result = MeasureWay(guest, words[2], size);
  fmt::print("{} {} {} {} {} {}\n", words[2], size, result.messages, result.bytes,
             result.elapsed.count(), result.guest_ns);
  return 0;
}
