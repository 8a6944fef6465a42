#include "report/export/perfetto_threads.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <utility>
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

// What a trace says: for slices "web: 10-20 stolen", for the scheduler "0 at 10: swapper(0) 0 ->
// web(7)". `processes` and `threads` are of the domain's machine.
struct Decoded {
  std::vector<std::string> processes;
  std::vector<std::string> threads;
  std::vector<std::string> slices;
  std::vector<std::string> flows;
  std::vector<std::string> sched;
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
    machine_ = 0;
    for (protozero::pbf_reader copy = packet; copy.next();) {
      if (copy.tag() == 98) {
        machine_ = copy.get_uint32();
      } else {
        copy.skip();
      }
    }
    EXPECT_THAT(machine_, testing::AnyOf(0U, PerfettoThreads::MachineOf(kD1)));
    while (packet.next()) {
      switch (packet.tag()) {
        case 1:
          OnBundle(packet.get_message());
          break;
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
          names_[{machine_, number}] = name.get_string();
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
          uint32_t pid = 0;
          while (process.next()) {
            if (process.tag() == 1) {
              pid = process.get_uint32();
            } else {
              decoded_.processes.push_back(fmt::format("{} {}", pid, process.get_string()));
            }
          }
          break;
        }
        case 4: {
          protozero::pbf_reader thread = track.get_message();
          uint32_t ids[3] = {};
          while (thread.next()) {
            if (thread.tag() == 5) {
              tracks_[number] = thread.get_string();
            } else {
              ids[thread.tag()] = thread.get_uint32();
            }
          }
          decoded_.threads.push_back(fmt::format("{}/{} {}", ids[1], ids[2], tracks_[number]));
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
          name = names_.at({machine_, event.get_uint64()});
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

  void OnBundle(protozero::pbf_reader bundle) {
    uint32_t cpu = 0;
    std::string lost;
    std::vector<std::string> events;
    while (bundle.next()) {
      if (bundle.tag() == 1) {
        cpu = bundle.get_uint32();
      } else if (bundle.tag() == 3) {
        lost = bundle.get_bool() ? " after a loss" : "";
      } else {
        events.push_back(SchedEvent(bundle.get_message()));
      }
    }
    for (const std::string& event : events) {
      decoded_.sched.push_back(fmt::format("{}{} {}", cpu, std::exchange(lost, ""), event));
    }
  }
  static std::string SchedEvent(protozero::pbf_reader event) {
    uint64_t at = 0;
    uint32_t current = 0;
    while (event.next()) {
      switch (event.tag()) {
        case 1:
          at = event.get_uint64();
          break;
        case 2:
          current = event.get_uint32();
          break;
        default: {
          const uint32_t kind = event.tag();
          // By field: what it says, as text.
          std::map<uint32_t, std::string> fields;
          for (protozero::pbf_reader of = event.get_message(); of.next();) {
            const bool is_text = of.wire_type() == protozero::pbf_wire_type::length_delimited;
            std::string& field = fields[of.tag()];
            field = is_text ? of.get_string() : std::to_string(of.get_int64());
          }
          if (kind == 4) {
            EXPECT_EQ(fields[2], std::to_string(current));
            return fmt::format("at {}: {}({}) {} -> {}({})", at, fields[1], fields[2], fields[4],
                               fields[5], fields[6]);
          }
          if (kind == 20) {
            return fmt::format("at {}: {} wakes {}({})", at, current, fields[1], fields[2]);
          }
          return fmt::format("at {}: {} begins {}({}), flags {}", at, current, fields[2], fields[1],
                             fields[3]);
        }
      }
    }
    return "";
  }

  Decoded decoded_;
  uint32_t machine_ = 0;  // of the packet
  std::map<std::pair<uint32_t, uint64_t>, std::string> names_;
  std::map<uint64_t, std::string> tracks_{{kVcpuTrack, "d1v0"}};
  std::map<uint64_t, std::pair<std::string, std::string>> open_;
};

// Returns what is written of the domain's threads; so many of the scheduler's events are left out.
Decoded Write(RecordedKernel& kernel, const trace::TraceBuilder& trace, uint64_t left_out = 0) {
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
  EXPECT_TRUE(threads.Finish().ok());
  EXPECT_EQ(threads.left_out(), left_out);
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

// The scheduler's events are the kernel's, with its own numbers; slices are what only Xen knows.
TEST(PerfettoThreads, ADomainIsAMachine) {
  RecordedKernel kernel(kD1);
  RecordShop(kernel);
  const Decoded decoded = Write(kernel, Xen());
  EXPECT_THAT(decoded.processes,
              UnorderedElementsAre("7 web1, shop: web", "2147483647 web1: [process not known]"));
  EXPECT_THAT(decoded.threads, UnorderedElementsAre("7/7 web", "2147483647/8 db"));
  EXPECT_THAT(
      decoded.sched,
      ElementsAre("0 at 100: swapper(0) 0 -> swapper(0)", "0 at 100: swapper(0) 0 -> web(7)",
                  "0 at 250: web(7) 1 -> db(8)", "0 at 450: 8 wakes web(7)",
                  "0 at 500: db(8) 1 -> web(7)", "0 at 600: web(7) 1 -> swapper(0)"));
  EXPECT_THAT(decoded.slices,
              UnorderedElementsAre("db: 300-400 stolen", "threads: 100-250 web (7)",
                                   "threads: 250-500 db (8)", "threads: 500-600 web (7)"));
  EXPECT_THAT(decoded.flows, ElementsAre("1 begins at 450: db: wakes web (7)",
                                         "1 ends at 450: web: woken by db (8)"));
}

// By the number of a state above the lower 8 bits, which depends on the kernel.
TEST(PerfettoThreads, PreemptedThreadsAreSoForAllKernels) {
  for (const uint64_t preempted : {0x100, 0x800, 0x1000}) {
    RecordedKernel kernel(kD1);
    kernel.Page(0, PageBuilder(100)
                       .Switch(0, 7, preempted, 8, "db")
                       .Switch(10, 8, 2, 7, "web")
                       .Switch(10, 7, 0, 8, "db")
                       .Page());
    EXPECT_THAT(Write(kernel, Xen()).sched,
                ElementsAre("0 at 100: swapper(0) 0 -> web(7)", "0 at 100: web(7) 256 -> db(8)",
                            "0 at 110: db(8) 2 -> web(7)", "0 at 120: web(7) 0 -> db(8)"));
  }
}

TEST(PerfettoThreads, NewThreadsBelongToTheirProcess) {
  RecordedKernel kernel(kD1);
  kernel.Thread(7, 7, "web")
      .Page(0, PageBuilder(100)
                   .Switch(0, 0, 0, 7, "web")
                   .NewTask(10, 7, 20, "worker", 0x10000)
                   .NewTask(10, 7, 21, "sh", 0)
                   .Switch(10, 7, kSleep, 21, "sh")
                   .Page());
  const Decoded decoded = Write(kernel, Xen());
  EXPECT_THAT(decoded.threads, UnorderedElementsAre("7/7 web", "7/20 worker", "21/21 sh"));
  EXPECT_THAT(decoded.sched, testing::IsSupersetOf({"0 at 110: 7 begins worker(20), flags 65536",
                                                    "0 at 120: 7 begins sh(21), flags 0"}));
}

// The thread is not known between the loss and the next event, and has no state.
TEST(PerfettoThreads, LossesAreMarked) {
  RecordedKernel kernel(kD1);
  kernel.Page(0, PageBuilder(100).Switch(0, 0, 0, 7, "web").Page())
      .Page(0, PageBuilder(300)
                   .Switch(0, 8, kSleep, 0, "idle")
                   .Switch(50, 0, 0, 8, "db")
                   .Page(/*is_lossy=*/true));
  const Decoded decoded = Write(kernel, Xen());
  EXPECT_THAT(
      decoded.sched,
      ElementsAre("0 at 100: swapper(0) 0 -> swapper(0)", "0 at 100: swapper(0) 0 -> web(7)",
                  "0 after a loss at 100: web(7) 65024 -> [not known](2147418112)",
                  "0 at 300: [not known](2147418112) 0 -> db(8)", "0 at 300: db(8) 1 -> swapper(0)",
                  "0 at 350: swapper(0) 0 -> db(8)"));
}

// Perfetto takes no part of a file with a CPU of this number.
TEST(PerfettoThreads, LeavesOutEventsOfCpusThatPerfettoDoesNotTake) {
  RecordedKernel kernel(kD1);
  kernel.Page(
      PerfettoSched::kMaxCpus,
      PageBuilder(100).Switch(0, 7, kSleep, 8, "db").Switch(50, 8, kSleep, 0, "idle").Page());
  const Decoded decoded = Write(kernel, Xen(), /*left_out=*/3);
  EXPECT_EQ(decoded.sched.size(), PerfettoSched::kMaxCpus);
  EXPECT_EQ(decoded.sched.front(), "0 at 100: swapper(0) 0 -> [not known](2147418112)");
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
