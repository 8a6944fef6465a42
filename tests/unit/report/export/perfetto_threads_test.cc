#include "report/export/perfetto_threads.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using guests::kSleep;
using guests::PageBuilder;
using guests::RecordedKernel;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr DomainId kD1{1};
constexpr uint64_t kVcpuTrack = 77;

// What a trace says: "web (7)" for its slices, "web (7): 10-20 running", and descriptions.
struct Decoded {
  std::vector<std::string> processes;
  std::vector<std::string> slices;
  std::vector<std::string> flows;
};

class Decoder {
 public:
  Decoded Run(std::string_view bytes) {
    protozero::pbf_reader trace(bytes.data(), bytes.size());
    while (trace.next(1)) OnPacket(trace.get_message());
    EXPECT_TRUE(open_.empty());
    return decoded_;
  }

 private:
  void OnPacket(protozero::pbf_reader packet) {
    uint64_t at = 0;
    std::optional<protozero::pbf_reader> event;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          at = packet.get_uint64();
          break;
        case 11:
          event = packet.get_message();
          break;
        case 12:
          OnInterned(packet.get_message());
          break;
        case 60:
          OnTrack(packet.get_message());
          break;
        default:
          packet.skip();
      }
    }
    if (event) OnEvent(*event, at);
  }
  void OnInterned(protozero::pbf_reader interned) {
    while (interned.next(2)) {
      protozero::pbf_reader name = interned.get_message();
      uint64_t number = 0;
      while (name.next()) {
        if (name.tag() == 1) {
          number = name.get_uint64();
        } else {
          names_[number] = name.get_string();
        }
      }
    }
  }
  void OnTrack(protozero::pbf_reader track) {
    uint64_t number = 0;
    while (track.next()) {
      switch (track.tag()) {
        case 1:
          number = track.get_uint64();
          break;
        case 2:
          tracks_[number] = track.get_string();
          break;
        case 3: {
          protozero::pbf_reader process = track.get_message();
          if (process.next(6)) decoded_.processes.push_back(process.get_string());
          break;
        }
        case 4: {
          protozero::pbf_reader thread = track.get_message();
          if (thread.next(5)) tracks_[number] = thread.get_string();
          break;
        }
        default:
          track.skip();
      }
    }
  }
  void OnEvent(protozero::pbf_reader event, uint64_t at) {
    int32_t type = 0;
    uint64_t track = 0;
    std::string name;
    std::string flow;
    while (event.next()) {
      switch (event.tag()) {
        case 9:
          type = event.get_enum();
          break;
        case 10:
          name = names_.at(event.get_uint64());
          break;
        case 11:
          track = event.get_uint64();
          break;
        case 23:
          name = event.get_string();
          break;
        case 47:
          flow = fmt::format("{} begins", event.get_fixed64());
          break;
        case 48:
          flow = fmt::format("{} ends", event.get_fixed64());
          break;
        default:
          event.skip();
      }
    }
    const std::string& on = tracks_.at(track);
    if (!flow.empty())
      decoded_.flows.push_back(fmt::format("{} at {}: {}: {}", flow, at, on, name));
    if (type == 1) {
      EXPECT_TRUE(open_.try_emplace(track, fmt::format("{}-", at), name).second);
    } else if (type == 2) {
      const auto& [begin, what] = open_.at(track);
      decoded_.slices.push_back(fmt::format("{}: {}{} {}", on, begin, at, what));
      open_.erase(track);
    }
  }

  Decoded decoded_;
  std::map<uint64_t, std::string> names_;
  std::map<uint64_t, std::string> tracks_{{kVcpuTrack, "d1v0"}};
  std::map<uint64_t, std::pair<std::string, std::string>> open_;
};

// Returns what is written of the domain's threads.
Decoded Write(RecordedKernel& kernel, const trace::TraceBuilder& trace) {
  const auto xen = trace::TraceFile::FromBytes(trace.bytes(), "test");
  EXPECT_TRUE(xen.ok()) << xen.status();
  const guests::KernelTrace& events = kernel.Open();
  guests::ThreadStates named(events, guests::EventClock::Fixed(0));
  EXPECT_TRUE(guests::FollowThreads({&named, 1}, &*xen).ok());
  std::string bytes;
  const Clock clock{1'000'000'000, ClockSource::kGiven};
  PerfettoPackets packets(clock, [&bytes](std::string_view more) {
    bytes += more;
    return absl::OkStatus();
  });
  packets.Begin(Tsc{0});
  PerfettoThreads threads(
      {&named, 1}, packets, [](DomainId) { return std::string("web1"); },
      [](VcpuRef) { return kVcpuTrack; });
  guests::ThreadStates shown(events, guests::EventClock::Fixed(0));
  shown.SetObserver(&threads);
  EXPECT_TRUE(guests::FollowThreads({&shown, 1}, &*xen).ok());
  threads.Finish();
  EXPECT_TRUE(packets.Finish().ok());
  return Decoder().Run(bytes);
}

// The vCPU runs, but in [300, 400), where it waits for a pCPU.
trace::TraceBuilder Xen() {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0, {Rec(kRunnableToRunning, 50, {kD1V0}), Rec(kVmentry, 60, {}),
                 Rec(kVmexit64, 150, {0x72, 0x1000, 0}), Rec(kVmentry, 160, {}),
                 Rec(kVmexit64, 300, {0x60, 0x1000, 0}), Rec(kRunningToRunnable, 300, {kD1V0}),
                 Rec(kRunnableToRunning, 400, {kD1V0}), Rec(kVmentry, 410, {}),
                 Rec(kVmexit64, 900, {0x78, 0x1000, 0}), Rec(kRunningToBlocked, 910, {kD1V0})});
  return xen;
}

TEST(PerfettoThreads, ThreadsHaveTheirStatesAsSlices) {
  RecordedKernel kernel(kD1);
  RecordShop(kernel);
  const Decoded decoded = Write(kernel, Xen());
  EXPECT_THAT(decoded.processes,
              UnorderedElementsAre("web1, shop: web (7)", "web1: [other threads]"));
  EXPECT_THAT(decoded.slices,
              UnorderedElementsAre(
                  "web (7): 100-250 running", "web (7): 250-450 sleeping", "web (7): 450-500 woken",
                  "web (7): 500-600 running", "db (8): 250-300 running", "db (8): 300-400 stolen",
                  "db (8): 400-500 running", "db (8): 500-600 sleeping", "threads: 100-250 web (7)",
                  "threads: 250-500 db (8)", "threads: 500-600 web (7)"));
  EXPECT_THAT(decoded.flows, ElementsAre("1 begins at 450: db (8): wakes web (7)",
                                         "1 ends at 450: web (7): woken"));
}

// Handlers have a track, and what they left to do another one. Of the second handler the end is not
// known, and the third one contradicts the fourth.
TEST(PerfettoThreads, HandlersAreTracksOfTheirVcpu) {
  RecordedKernel kernel(kD1);
  kernel.Page(0, PageBuilder(100)
                     .Switch(0, 0, 0, 7, "web")                  // 100
                     .Interrupt(50, guests::kSoftirqEntryId, 3)  // 150
                     .IrqEntry(50, 24, "eth0")                   // 200
                     .Interrupt(20, guests::kIrqExitId, 24)      // 220
                     .Interrupt(40, guests::kSoftirqExitId, 3)   // 260
                     .IrqEntry(20, 25, "eth1")                   // 280
                     .Switch(20, 7, 0, 8, "db")                  // 300
                     .IrqEntry(10, 26, "a")                      // 310
                     .IrqEntry(10, 27, "")                       // 320
                     .Interrupt(10, guests::kIrqExitId, 27)      // 330
                     .Interrupt(10, guests::kIrqExitId, 26)      // 340
                     .Switch(60, 8, kSleep, 0, "idle")           // 400
                     .Page());
  std::vector<std::string> handlers;
  for (const std::string& slice : Write(kernel, Xen()).slices) {
    if (slice.find("irqs: ") != std::string::npos) handlers.push_back(slice);
  }
  EXPECT_THAT(handlers, ElementsAre("irqs: 200-220 irq 24 eth0", "softirqs: 150-260 softirq NET_RX",
                                    "irqs: 320-330 irq 27", "irqs: 330-340 irq 26 a"));
}

// A kernel may claim that a thread is on two vCPUs: its slices never overlap.
TEST(PerfettoThreads, SlicesDoNotOverlapWhereEventsContradict) {
  RecordedKernel kernel(kD1);
  kernel
      .Page(0, PageBuilder(100)
                   .Switch(0, 1, 0, 7, "a")
                   .Switch(100, 9, kSleep, 7, "a")
                   .Switch(100, 7, 0, 8, "b")
                   .Page())
      .Page(1, PageBuilder(150).Switch(0, 2, 0, 7, "a").Switch(90, 7, kSleep, 7, "a").Page());
  EXPECT_FALSE(Write(kernel, Xen()).slices.empty());
}

}  // namespace
}  // namespace xenoscope::report
