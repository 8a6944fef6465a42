#include "guests/threads/learn_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "recording/sample_writer.h"
#include "tests/unit/guests/ftrace/page_builder.h"

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;

// A file of a kernel's trace that grows, the begin of which is freed.
class LiveKernel {
 public:
  LiveKernel() {
    const recording::FileHeader header;
    const auto bytes = std::as_bytes(std::span(&header, 1));
    file_.assign(bytes.begin(), bytes.end());
    writer_.AppendTraceFormats(kDom0, kSwitchFormats);
    recording::ProcessChunk chunk;
    for (const uint32_t tid : {7U, 8U}) {
      recording::ProcessEntry entry;
      entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kThread);
      entry.pid = 7;
      entry.tid = tid;
      chunk.Add(entry, nullptr, tid == 7 ? "web" : "web-io");
    }
    recording::ProcessEntry entry;
    entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kCgroup);
    entry.pid = entry.tid = 7;
    chunk.Add(entry, nullptr, "/shop.service");
    writer_.Append(kDom0, chunk);
  }

  // Adds the page, frees what was there before, and returns the threads: "web (7) of web (7),
  // shop".
  std::vector<std::string> Window(const std::vector<std::byte>& page) {
    const size_t begin = file_.size();
    std::ranges::fill(std::span(file_).subspan(std::min<size_t>(begin, kHeader)), std::byte{});
    writer_.AppendTracePages({kDom0, VcpuId{0}}, {}, PageBuilder::kSize, page);
    const std::vector<std::byte> chunks = writer_.Take();
    file_.insert(file_.end(), chunks.begin(), chunks.end());
    auto trace = KernelTrace::OpenLive(file_, kDom0, begin, begin_);
    EXPECT_TRUE(trace.ok() && *trace) << trace.status();
    if (!trace.ok() || !*trace) return {};
    ThreadStates states(**trace, EventClock::Fixed(0));
    EXPECT_TRUE(FollowThreads({&states, 1}, /*xen=*/nullptr).ok());
    LearnThreads(states, begin_);
    std::vector<std::string> texts;
    for (const GuestThread& thread : states.threads()) {
      if (thread.tid == 0) continue;
      const GuestProcess& process = states.processes()[thread.process];
      texts.push_back(thread.name + " of " + process.name + process.cgroup);
    }
    std::ranges::sort(texts);
    return texts;
  }

 private:
  static constexpr size_t kHeader = sizeof(recording::FileHeader);
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
  std::vector<std::byte> file_;
  KernelTraceBegin begin_;
};

// Formats and threads are at the begin of the file only, which is freed.
TEST(LearnThreads, ThreadsOfEarlierWindowsKeepTheirProcess) {
  LiveKernel kernel;
  const std::vector<std::string> both{"web of web/shop.service", "web-io of web/shop.service"};
  EXPECT_EQ(
      kernel.Window(
          PageBuilder(100).Switch(0, 0, 0, 7, "web").Switch(10, 7, kSleep, 8, "web-io").Page()),
      both);
  EXPECT_EQ(kernel.Window(PageBuilder(200).Switch(0, 7, kSleep, 8, "web-io").Exit(10, 8).Page()),
            both);
  // What had ended before a window is forgotten after it.
  const std::vector<std::byte> other = PageBuilder(300).Switch(0, 0, 0, 7, "web").Page();
  EXPECT_EQ(kernel.Window(other), both);
  EXPECT_THAT(kernel.Window(other), ElementsAre("web of web/shop.service"));
}

}  // namespace
}  // namespace xenoscope::guests
