#include "report/html/page_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "report/html/packed.h"
#include "tests/unit/guests/ftrace/page_builder.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using guests::RecordedKernel;
using nlohmann::ordered_json;
using testing::ElementsAre;

constexpr DomainId kD1{1};

// The vCPU runs from 50 on, but in [300, 400), where it waits for a pCPU.
trace::TraceBuilder Xen() {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder xen;
  xen.Window(0, {Rec(kRunnableToRunning, 50, {kD1V0}), Rec(kRunningToRunnable, 300, {kD1V0}),
                 Rec(kRunnableToRunning, 400, {kD1V0}), Rec(kRunningToBlocked, 910, {kD1V0})});
  return xen;
}

ordered_json PageOf(RecordedKernel& kernel, TscRange shown) {
  const trace::TraceBuilder trace = Xen();
  const auto xen = trace::TraceFile::FromBytes(trace.bytes(), "test");
  EXPECT_TRUE(xen.ok()) << xen.status();
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(kernel.Open(), guests::EventClock::Fixed(0));
  PageThreads threads(domains, shown);
  domains[0].SetObserver(&threads);
  EXPECT_TRUE(guests::FollowThreads(domains, &*xen).ok());
  auto page = threads.ToJson([](DomainId) { return std::string("web1"); });
  EXPECT_TRUE(page.ok()) << page.status();
  return page.ok() ? *page : ordered_json{};
}

TEST(PageThreads, AreThoseThatWereOnVcpusTheLongestFirst) {
  RecordedKernel kernel(kD1);
  const ordered_json page = PageOf(RecordShop(kernel), {Tsc{0}, Tsc{1000}});
  std::vector<std::string> names;
  for (const auto& thread : page["list"]) names.push_back(thread["name"]);
  EXPECT_THAT(names, ElementsAre("web", "db"));
  EXPECT_EQ(page["list"][0]["container"], "shop");
  EXPECT_EQ(page["list"][0]["domain"], "web1");
  EXPECT_EQ(page["left_out"], 0);
  EXPECT_EQ(page["vcpus"], ordered_json({"web1 v0"}));
  // In the order in which they ran first: numbers in the list.
  EXPECT_EQ(page["numbers"], ordered_json({0, 1}));
}

// A row has a head for each interval: 3 for web1 v0; for web running, sleeping, woken, running; for
// db running, stolen, running, sleeping.
TEST(PageThreads, StatesOfOneKindAreOneInterval) {
  RecordedKernel kernel(kD1);
  const ordered_json page = PageOf(RecordShop(kernel), {Tsc{0}, Tsc{1000}});
  const auto heads = [](const ordered_json& of, size_t row) {
    return of["rows"]["bytes"][IntervalTrack::kColumns * row];
  };
  EXPECT_EQ(page["rows"]["bytes"].size(), 3 * IntervalTrack::kColumns);
  RecordedKernel again(kD1);
  const ordered_json later = PageOf(RecordShop(again), {Tsc{460}, Tsc{1000}});
  EXPECT_EQ(later["list"].size(), 2U);
  EXPECT_LT(heads(later, 0), heads(page, 0));
  EXPECT_LT(heads(later, 1), heads(page, 1));
}

// A softirq [150, 260) is interrupted by a handler [200, 220); of [100, 120) only the end is known.
TEST(PageThreads, HandlersAreRowsOfTheirVcpu) {
  RecordedKernel kernel(kD1);
  kernel.Thread(7, 7, "web")
      .Page(0, guests::PageBuilder(100)
                   .Switch(0, 0, 0, 7, "web")                  // 100
                   .Interrupt(20, guests::kIrqExitId, 9)       // 120
                   .Interrupt(30, guests::kSoftirqEntryId, 3)  // 150
                   .IrqEntry(50, 24, "eth<0>")                 // 200
                   .Interrupt(20, guests::kIrqExitId, 24)      // 220
                   .Interrupt(40, guests::kSoftirqExitId, 3)   // 260
                   .Switch(340, 7, guests::kSleep, 0, "idle")  // 600
                   .Page());
  const ordered_json handlers = PageOf(kernel, {Tsc{100}, Tsc{230}})["handlers"];
  EXPECT_EQ(handlers["names"], ordered_json({"irq 24 eth<0>", "softirq NET_RX"}));
  EXPECT_EQ(handlers["vcpus"], ordered_json({"web1 v0"}));
  // Of each: the head of code 0 or 1 and part 0; since the time 100, zigzag; the length in what is
  // shown.
  std::string expected;
  for (const uint64_t number : {1U, 2U * 100U, 20U, 5U, 2U * 50U, 80U}) {
    PutNumber(number, expected);
  }
  EXPECT_EQ(handlers["rows"]["packed"], *Packed(expected));
}

}  // namespace
}  // namespace xenoscope::report
