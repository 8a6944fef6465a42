// What an agent takes of its kernel's boot.
#include "sampler/ftrace/boot_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "recording/chunk_reader.h"

namespace xenoscope::sampler {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCommandLine =
    "console=hvc0 trace_event=initcall:*,sched:sched_switch trace_clock=x86-tsc quiet\n";

TEST(BootTrace, IsRecordedIfTheCommandLineAsksForIt) {
  struct {
    const char* line;
    bool want;
  } const kCases[] = {
      {kCommandLine, true},
      {"trace_event=sched:sched_switch,initcall trace_clock=x86-tsc", true},
      {"trace_event=initcall:*", false},  // by another clock
      {"trace_event=sched:* trace_clock=x86-tsc", false},
      {"my_trace_event=initcall:* trace_clock=x86-tsc", false},
      {"trace_event=initcall:* trace_clock=x86-tsc-2", false},
      {"", false},
  };
  for (const auto& [line, want] : kCases) EXPECT_EQ(RecordsBoot(line), want) << line;
}

// Files in place of tracefs. A CPU's pages are a file that ends, as the kernel's do.
class BootTraceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/boot_trace.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    Write("trace_clock", "local global [x86-tsc]");
    Write("tracing_on", "1");
    Write("events/header_page",
          "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
          "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
          "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n");
    Write("events/initcall/enable", "1");
    Write("events/initcall/initcall_start/enable", "1");
    Write("events/initcall/initcall_start/format", "name: initcall_start\nID: 5\n");
    Write("events/sched/enable", "0");
    Write("events/sched/sched_switch/enable", "0");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& name, const std::string& text) const {
    const auto path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(root_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::filesystem::path root_;
};

TEST_F(BootTraceTest, HasFormatsAndPages) {
  Write("per_cpu/cpu0/trace_pipe_raw", std::string(8192, 'a'));
  Write("per_cpu/cpu1/trace_pipe_raw", "");
  const auto file = TakeBootTrace(root_.string(), kCommandLine);
  ASSERT_TRUE(file.ok()) << file.status();
  auto chunks = recording::ChunkReader::Open(*file);
  ASSERT_TRUE(chunks.ok()) << chunks.status();
  const auto formats = chunks->Next();
  ASSERT_TRUE(formats);
  EXPECT_THAT(std::string(AsText(formats->entries)), HasSubstr("# initcall/initcall_start\n"));
  const auto pages = chunks->Next();
  ASSERT_TRUE(pages);
  EXPECT_EQ(pages->header.kind, recording::ChunkKind::kTracePages);
  EXPECT_EQ(pages->header.count, 2);
  EXPECT_EQ(pages->header.entry_size, 4096);
  EXPECT_FALSE(chunks->Next());
  EXPECT_EQ(Read("tracing_on")[0], '0') << "it costs nothing from now on";
}

// A tracer's events have no file by which they are on.
TEST_F(BootTraceTest, HasFormatsOfFunctionsThatWereTracedAndEndsThat) {
  Write("per_cpu/cpu0/trace_pipe_raw", std::string(4096, 'a'));
  Write("events/ftrace/funcgraph_entry/format", "name: funcgraph_entry\nID: 11\n");
  Write("events/ftrace/funcgraph_exit/format", "name: funcgraph_exit\nID: 10\n");
  Write("events/ftrace/print/format", "name: print\nID: 5\n");
  for (const bool traces : {false, true}) {
    Write("current_tracer", traces ? "function_graph\n" : "nop\n");
    const auto file = TakeBootTrace(root_.string(), kCommandLine);
    ASSERT_TRUE(file.ok()) << file.status();
    auto chunks = recording::ChunkReader::Open(*file);
    ASSERT_TRUE(chunks.ok()) << chunks.status();
    const std::string formats(AsText(chunks->Next()->entries));
    EXPECT_EQ(formats.find("# ftrace/funcgraph_entry\n") != std::string::npos, traces);
    EXPECT_EQ(formats.find("# ftrace/funcgraph_exit\n") != std::string::npos, traces);
    EXPECT_EQ(formats.find("print"), std::string::npos);
    EXPECT_EQ(Read("current_tracer").substr(0, 3), "nop");
  }
}

TEST_F(BootTraceTest, IsNotTakenWhereItIsNotThere) {
  struct {
    const char* command_line;
    const char* clock;
    const char* why;
  } const kCases[] = {{"quiet", "[x86-tsc]", "did not record its boot"},
                      {kCommandLine, "[local] x86-tsc", "another clock"},
                      {kCommandLine, "[x86-tsc]", "read by another program"}};
  Write("per_cpu/cpu0/trace_pipe_raw", "");
  for (const auto& [command_line, clock, why] : kCases) {
    Write("trace_clock", clock);
    const auto file = TakeBootTrace(root_.string(), command_line);
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace xenoscope::sampler
