// What is recorded of the threads that exist, and names of events that come from another domain.
#include "sampler/ftrace/ftrace_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mapped_file.h"
#include "recording/process_reader.h"
#include "sampler/ftrace/event_list.h"

namespace xenoscope::sampler {
namespace {

using recording::ProcessEntryType;
using ::testing::ElementsAre;

TEST(FtraceSourceTest, RecordsOnWhoseBehalfProcessesWork) {
  const std::vector<RunningThread> threads{
      {.pid = 77, .tid = 77, .name = "qemu-system-i38", .cgroup = ""},
      {.pid = 77, .tid = 78, .name = "3.xvda-0", .cgroup = ""},
      {.pid = 90, .tid = 90, .name = "3.xvda-0", .cgroup = ""}};
  const BehalfOf behalf_of = [](uint32_t pid, std::string_view name) {
    if (pid == 77 && name == "qemu-system-i38") return std::optional(DomainId{4});
    return name == "3.xvda-0" ? std::optional(DomainId{3}) : std::nullopt;
  };
  recording::ProcessChunk chunk;
  AddThreads(threads, chunk);
  AddBehalf(threads, behalf_of, Tsc{5}, chunk);
  const std::string path = std::filesystem::path(testing::TempDir()) / "ftrace_source_test.samples";
  std::filesystem::remove(path);
  auto writer = recording::SampleWriter::Create(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  writer->Append(kDom0, chunk);
  ASSERT_TRUE(writer->Flush().ok());
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  auto reader = recording::ProcessReader::Open(file->bytes());
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> lines;
  while (const auto record = reader->Next()) {
    if (record->type == ProcessEntryType::kThread) {
      lines.push_back(fmt::format("{} of {}: {}", record->tid, record->pid, record->text));
    } else if (record->type == ProcessEntryType::kBehalf) {
      lines.push_back(fmt::format("{} for {} at {}", record->pid, ToString(record->behalf),
                                  record->when.value));
    }
  }
  // A thread does not decide for its process.
  EXPECT_THAT(lines, ElementsAre("77 of 77: qemu-system-i38", "78 of 77: 3.xvda-0",
                                 "90 of 90: 3.xvda-0", "77 for d4 at 5", "90 for d3 at 5"));
}

TEST(FtraceSourceTest, WithoutXenstoreNothingIsKnownOfBehalf) {
  recording::ProcessChunk chunk;
  AddBehalf(std::vector<RunningThread>{{.pid = 1, .tid = 1, .name = "3.xvda-0", .cgroup = ""}}, {},
            Tsc{5}, chunk);
  EXPECT_TRUE(chunk.empty());
}

TEST(EventList, NamesSystemsAndEvents) {
  EXPECT_TRUE(CheckEventList({"raw_syscalls", "irq:*", "sched:sched_stat_runtime"}).ok());
  EXPECT_EQ(EventDirectory("raw_syscalls"), "raw_syscalls");
  EXPECT_EQ(EventDirectory("irq:*"), "irq");
  EXPECT_EQ(EventDirectory("sched:sched_stat_runtime"), "sched/sched_stat_runtime");
}

TEST(EventList, RefusesWhatIsAnotherPath) {
  for (const char* const event :
       {"", ":", "*", "*:*", "irq:", ":irq", "..", "../irq", "irq/enable", "irq:..", "irq:../x",
        "irq:a:b", "irq:a*", "irq a", "irq\n", "sched:sched_switch/../../../trace_clock", "\xff"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckEventList({"irq", event}))) << event;
  }
  EXPECT_FALSE(CheckEventList({std::string("irq\0", 4)}).ok());
  EXPECT_FALSE(CheckEventList({std::string(65, 'a')}).ok());
  EXPECT_FALSE(CheckEventList(std::vector<std::string>(17, "irq")).ok());
}

}  // namespace
}  // namespace xenoscope::sampler
