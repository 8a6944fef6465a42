// The perf source with a simulated Linux.
#include "sampler/perf/perf_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/user_registers.h"
#include "recording/chunk_reader.h"
#include "recording/process_reader.h"
#include "recording/sample_reader.h"
#include "tests/unit/sampler/fake_perf.h"

namespace xenoscope::sampler {
namespace {

using recording::ProcessEntryType;
using recording::ProcessRecord;
using recording::Sample;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PerfSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / "perf_source_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
    auto writer = recording::SampleWriter::Create(path_ + "/perf.samples");
    ASSERT_TRUE(writer.ok());
    writer_.emplace(*std::move(writer));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  static PerfRequest Request() {
    PerfRequest request;
    request.first_event = 2;
    request.clock_hz = 2'000'000'000;
    request.seed = 1;
    return request;
  }
  // Returns the request for cycles in these modes, and lets counters count.
  PerfRequest CyclesIn(std::string_view letters) {
    kernel_.counters = true;
    PerfRequest request = Request();
    request.events = {*ParseEventSpec(fmt::format("cycles:{}:1000000", letters))};
    return request;
  }
  absl::StatusOr<std::unique_ptr<PerfSource>> TryOpen(const PerfRequest& request) {
    return PerfSource::Open(request, std::make_unique<FakePerf>(kernel_), [] {
      return std::vector<RunningProcess>{
          {77, "daemon", {{0x400000, 0x401000, 0x1000, 9, "/no/such/daemon"}}}};
    });
  }
  std::unique_ptr<PerfSource> Start(const PerfRequest& request) {
    auto source = TryOpen(request);
    EXPECT_TRUE(source.ok()) << source.status();
    EXPECT_TRUE((*source)->Start().ok());
    return *std::move(source);
  }
  std::string Refusal(const PerfRequest& request) {
    return std::string(Message(TryOpen(request).status()));
  }
  // Takes a sample on the CPU, now.
  void Take(int cpu, Address address, uint16_t misc = PERF_RECORD_MISC_USER,
            const std::vector<uint64_t>& chain = {}, bool chains = false) {
    RecordBytes record(PERF_RECORD_SAMPLE, misc);
    record.Add(kernel_.IdOf(cpu, 0)).Add(address).Add(uint32_t{50}).Add(uint32_t{51});
    record.Add(kernel_.time).Add(static_cast<uint32_t>(cpu)).Add(uint32_t{0});
    record.Add(uint64_t{1'000'000});
    if (chains) {
      record.Add(uint64_t{chain.size()});
      for (const uint64_t word : chain) record.Add(word);
    }
    kernel_.RingOf(cpu).Put(record.Done());
    kernel_.Advance(1000);
  }
  std::vector<Sample> Samples() {
    EXPECT_TRUE(writer_->Flush().ok());
    mapped_ = *MappedFile::Open(path_ + "/perf.samples");
    auto reader = recording::SampleReader::Open(mapped_.bytes(), 5);
    std::vector<Sample> samples;
    while (auto sample = reader->Next()) samples.push_back(*sample);
    EXPECT_FALSE(reader->damage().Any());
    return samples;
  }
  std::vector<Address> Addresses() {
    std::vector<Address> addresses;
    for (const Sample& sample : Samples()) addresses.push_back(sample.address);
    return addresses;
  }
  std::vector<ProcessRecord> Processes() {
    EXPECT_TRUE(writer_->Flush().ok());
    mapped_ = *MappedFile::Open(path_ + "/perf.samples");
    auto reader = recording::ProcessReader::Open(mapped_.bytes());
    std::vector<ProcessRecord> records;
    while (auto record = reader->Next()) records.push_back(*record);
    EXPECT_EQ(reader->invalid(), 0);
    return records;
  }

  FakeKernel kernel_;
  std::string path_;
  std::optional<recording::SampleWriter> writer_;
  MappedFile mapped_;
};

TEST_F(PerfSourceTest, UsesCpuClockWithoutCounters) {
  const auto source = Start(Request());
  EXPECT_THAT(source->Notes(), ElementsAre(HasSubstr("performance counters do not count")));
  const auto events = source->Events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].name, "cpu-clock");
  EXPECT_EQ(events[0].clocked_by, "cpu-clock:1000");
  EXPECT_EQ(events[0].period, 2'000'000);  // cycles in a millisecond
}

TEST_F(PerfSourceTest, UsesCyclesWithCounters) {
  kernel_.counters = true;
  const auto source = Start(Request());
  EXPECT_THAT(source->Notes(), IsEmpty());
  EXPECT_EQ(source->Events()[0].name, "cycles");
  EXPECT_EQ(source->Events()[0].clocked_by, "pmu");
}

TEST_F(PerfSourceTest, SampleHasThreadModeCpuAndBracket) {
  const auto source = Start(Request());
  const uint64_t tsc = kernel_.tsc;
  Take(1, 0x401234);
  Take(0, 0xffffffff81000000, PERF_RECORD_MISC_KERNEL);
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples[0].vcpu, (VcpuRef{kDom0, VcpuId{1}}));
  EXPECT_EQ(samples[0].mode, Mode::kUser);
  EXPECT_EQ(samples[0].address, 0x401234);
  EXPECT_EQ(samples[0].event, 2);
  EXPECT_EQ(samples[0].thread, (recording::Thread{50, 51}));
  EXPECT_LE(samples[0].when.begin.value, tsc);
  EXPECT_GT(samples[0].when.end.value, tsc);
  EXPECT_LT(samples[0].when.Length(), 600);  // a mark takes 400 cycles, reading the TSC 10
  EXPECT_EQ(samples[1].mode, Mode::kKernel);
  EXPECT_EQ(samples[1].vcpu.vcpu, VcpuId{0});
}

TEST_F(PerfSourceTest, OrdersSamplesOfAllCpus) {
  const auto source = Start(Request());
  Take(1, 1);
  Take(0, 2);
  Take(1, 3);
  ASSERT_TRUE(source->Collect(*writer_).ok());
  Take(1, 4);
  Take(0, 5);
  ASSERT_TRUE(source->Stop(*writer_).ok());
  EXPECT_THAT(Addresses(), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(PerfSourceTest, SamplesWithoutMarkHaveWideBracketAtTheEnd) {
  const auto source = Start(Request());
  Take(0, 1);
  kernel_.swallowed_marks = 1000;
  ASSERT_TRUE(source->Collect(*writer_).ok());
  EXPECT_THAT(Addresses(), IsEmpty());
  const uint64_t tsc = kernel_.tsc;
  ASSERT_TRUE(source->Stop(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_GT(samples[0].when.end.value, tsc);
}

TEST_F(PerfSourceTest, MmapPageThatAgreesWithMarksGivesInstants) {
  const auto open = [this] {
    auto source = TryOpen(Request());
    for (auto& [fd, ring] : kernel_.rings) {
      ring.page.cap_user_time_zero = 1;
      ring.page.time_mult = 1U << 31;  // two cycles a nanosecond
      ring.page.time_shift = 32;
      ring.page.time_zero = 0;
    }
    EXPECT_TRUE((*source)->Start().ok());
    return *std::move(source);
  };
  const auto source = open();
  const uint64_t tsc = 2 * kernel_.time;
  Take(0, 1);
  ASSERT_TRUE(source->Stop(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_TRUE(samples[0].IsInstant());
  EXPECT_EQ(samples[0].when.begin.value, tsc);
}

TEST_F(PerfSourceTest, IgnoresMmapPageThatContradictsMarks) {
  auto source = TryOpen(Request());
  for (auto& [fd, ring] : kernel_.rings) {
    ring.page.cap_user_time_zero = 1;
    ring.page.time_mult = 1;
    ring.page.time_shift = 20;  // nonsense
  }
  ASSERT_TRUE((*source)->Start().ok());
  const uint64_t tsc = kernel_.tsc;
  Take(0, 1);
  ASSERT_TRUE((*source)->Stop(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_FALSE(samples[0].IsInstant());
  EXPECT_TRUE(samples[0].when.Contains(Tsc{tsc}));
}

TEST_F(PerfSourceTest, SplitsChainsByContext) {
  PerfRequest request = Request();
  request.call_chains = true;
  const auto source = Start(request);
  Take(0, 0xffffffff81000010, PERF_RECORD_MISC_KERNEL,
       {PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020, PERF_CONTEXT_USER, 0x401000,
        0x402000},
       /*chains=*/true);
  Take(0, 0x401000, PERF_RECORD_MISC_USER, {PERF_CONTEXT_USER, 0x401000}, /*chains=*/true);
  Take(0, 0x401004, PERF_RECORD_MISC_USER,
       {PERF_CONTEXT_USER, 0x401004, PERF_CONTEXT_GUEST_KERNEL, 0x12}, /*chains=*/true);
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(3));
  const recording::CallChain& chain = samples[0].callers;
  ASSERT_EQ(chain.size(), 3);
  EXPECT_EQ(chain.at(0), 0xffffffff81000020);
  EXPECT_EQ(chain.ModeAt(0), Mode::kKernel);
  EXPECT_EQ(chain.at(1), 0x401000);
  EXPECT_EQ(chain.ModeAt(1), Mode::kUser);
  EXPECT_EQ(chain.at(2), 0x402000);
  EXPECT_TRUE(samples[1].callers.empty());
  EXPECT_TRUE(samples[2].callers.empty());
}

// A sample with a chain and branch records.
std::vector<std::byte> SampleWithBranches(FakeKernel& kernel, uint16_t misc,
                                          const std::vector<uint64_t>& chain,
                                          const std::vector<std::pair<uint64_t, uint64_t>>& calls,
                                          uint64_t count) {
  RecordBytes record(PERF_RECORD_SAMPLE, misc);
  record.Add(kernel.IdOf(0, 0)).Add(chain.at(1)).Add(uint64_t{50});
  record.Add(kernel.time).Add(uint64_t{0}).Add(uint64_t{1});
  record.Add(uint64_t{chain.size()});
  for (const uint64_t word : chain) record.Add(word);
  record.Add(count);
  for (const auto& [from, to] : calls) record.Add(from).Add(to).Add(uint64_t{0});
  kernel.Advance(1000);
  return record.Done();
}

std::vector<std::pair<Mode, Address>> Callers(const Sample& sample) {
  std::vector<std::pair<Mode, Address>> callers;
  for (size_t i = 0; i < sample.callers.size(); ++i) {
    callers.emplace_back(sample.callers.ModeAt(i), sample.callers.at(i));
  }
  return callers;
}

// What the processor records of main at 0x401000 that called f at 0x402000, and that g at 0x403000.
class BranchRecordsTest : public PerfSourceTest {
 protected:
  static constexpr Address kKernel = 0xffffffff81000010;
  static constexpr std::pair<uint64_t, uint64_t> kMainToF{0x401010, 0x402000};
  static constexpr std::pair<uint64_t, uint64_t> kFToG{0x402010, 0x403000};

  PerfRequest Request() {
    kernel_.counters = true;
    kernel_.records_branches = true;
    PerfRequest request = PerfSourceTest::Request();
    request.call_chains = true;
    request.branch_records = true;
    return request;
  }
  void Put(uint16_t misc, const std::vector<uint64_t>& chain,
           const std::vector<std::pair<uint64_t, uint64_t>>& calls) {
    kernel_.RingOf(0).Put(SampleWithBranches(kernel_, misc, chain, calls, calls.size()));
  }
};

TEST_F(BranchRecordsTest, GiveTheCallersInUserMode) {
  const auto source = Start(Request());
  const auto& attributes = std::ranges::find_if(kernel_.open, [](const auto& opened) {
                             return opened.second.redirected.has_value();
                           })->second.attributes;
  EXPECT_EQ(attributes.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK,
            PERF_SAMPLE_BRANCH_CALL_STACK);
  EXPECT_EQ(attributes.branch_sample_type & PERF_SAMPLE_BRANCH_PLM_ALL, PERF_SAMPLE_BRANCH_USER);
  Put(PERF_RECORD_MISC_USER, {PERF_CONTEXT_USER, 0x403020, 0xbad}, {kFToG, kMainToF});
  Put(PERF_RECORD_MISC_KERNEL,
      {PERF_CONTEXT_KERNEL, kKernel, kKernel + 0x100, PERF_CONTEXT_USER, 0x403020, 0xbad},
      {kFToG, kMainToF});
  Put(PERF_RECORD_MISC_KERNEL, {PERF_CONTEXT_KERNEL, kKernel}, {kFToG, kMainToF});
  Put(PERF_RECORD_MISC_USER, {PERF_CONTEXT_USER, 0x401020, 0xbad}, {});
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(4));
  EXPECT_THAT(Callers(samples[0]),
              ElementsAre(std::pair(Mode::kUser, 0x402011), std::pair(Mode::kUser, 0x401011)))
      << "those of frame pointers are left out";
  EXPECT_THAT(
      Callers(samples[1]),
      ElementsAre(std::pair(Mode::kKernel, kKernel + 0x100), std::pair(Mode::kUser, 0x403020),
                  std::pair(Mode::kUser, 0x402011), std::pair(Mode::kUser, 0x401011)));
  EXPECT_THAT(Callers(samples[2]),
              ElementsAre(std::pair(Mode::kUser, 0x403000), std::pair(Mode::kUser, 0x402011),
                          std::pair(Mode::kUser, 0x401011)))
      << "g, by the last call";
  EXPECT_THAT(Callers(samples[3]), IsEmpty()) << "the outermost function";
}

TEST_F(BranchRecordsTest, MarkChainsThatUseAllRecords) {
  const auto source = Start(Request());
  Put(PERF_RECORD_MISC_USER, {PERF_CONTEXT_USER, 0x403020},
      {kFToG, kMainToF, {0x400010, 0x401000}});
  Put(PERF_RECORD_MISC_USER, {PERF_CONTEXT_USER, 0x403020}, {kFToG, kMainToF});
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples[0].callers.at(3), AddressOf(ChainEnd::kBranchesFull));
  EXPECT_THAT(Callers(samples[1]), SizeIs(2));
  EXPECT_THAT(source->FinalNotes(), Contains(HasSubstr("1 of 2 call chains by branch records")));
}

TEST_F(BranchRecordsTest, IgnoreWhatIsNotOfUserMode) {
  const auto source = Start(Request());
  Put(PERF_RECORD_MISC_USER, {PERF_CONTEXT_USER, 0x403020}, {kFToG, {kKernel, 0x402000}});
  Put(PERF_RECORD_MISC_KERNEL, {PERF_CONTEXT_KERNEL, kKernel}, {{0x402010, kKernel}});
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 40, ~uint64_t{0}}) {
    kernel_.RingOf(0).Put(SampleWithBranches(kernel_, PERF_RECORD_MISC_USER,
                                             {PERF_CONTEXT_USER, 0x403020}, {kFToG}, count));
  }
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(2)) << "the others have fewer records than they say";
  EXPECT_THAT(Callers(samples[0]), ElementsAre(std::pair(Mode::kUser, 0x402011)));
  EXPECT_THAT(Callers(samples[1]), IsEmpty());
  EXPECT_EQ(source->Streams()[0].ring->damaged, 3U);
}

TEST_F(BranchRecordsTest, RefusalSaysWhatToUse) {
  PerfRequest request = Request();
  kernel_.records_branches = false;
  EXPECT_THAT(Refusal(request),
              AllOf(HasSubstr("records no branches by calls"), HasSubstr("--call-graph dwarf")));
  kernel_.counters = false;
  EXPECT_THAT(Refusal(request), AllOf(HasSubstr("no counter counts here"), HasSubstr("dwarf")));
  request.events = {*ParseEventSpec("page-faults")};
  EXPECT_THAT(Refusal(request), HasSubstr("page-faults is Linux's own: use"));
  request.events = {*ParseEventSpec("cycles")};
  EXPECT_THAT(Refusal(request), HasSubstr("this machine cannot count it"))
      << "also without branch records";
}

// A sample of the kernel with the registers and the stack of user mode.
RecordBytes SampleWithStack(FakeKernel& kernel, uint64_t abi, uint64_t filled) {
  RecordBytes record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
  record.Add(kernel.IdOf(0, 0)).Add(uint64_t{0xffffffff81000010}).Add(uint64_t{50});
  record.Add(kernel.time).Add(uint64_t{0}).Add(uint64_t{1});
  record.Add(uint64_t{3}).Add(uint64_t{PERF_CONTEXT_KERNEL});
  record.Add(uint64_t{0xffffffff81000010}).Add(uint64_t{0xffffffff81000020});
  record.Add(abi);
  for (uint64_t i = 0; abi != 0 && i < kUserRegisters; ++i) record.Add(100 + i);
  record.Add(uint64_t{24}).Add(uint64_t{1}).Add(uint64_t{2}).Add(uint64_t{3}).Add(filled);
  kernel.Advance(1000);
  return record;
}

TEST_F(PerfSourceTest, RecordsRegistersAndPiecesOfStacks) {
  PerfRequest request = Request();
  request.call_chains = true;
  request.stack_bytes = 24;
  const auto source = Start(request);
  kernel_.RingOf(0).Put(SampleWithStack(kernel_, PERF_SAMPLE_REGS_ABI_64, 16).Done());
  kernel_.RingOf(0).Put(SampleWithStack(kernel_, PERF_SAMPLE_REGS_ABI_NONE, 0).Done());
  kernel_.RingOf(0).Put(SampleWithStack(kernel_, PERF_SAMPLE_REGS_ABI_32, 16).Done());
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const auto samples = Samples();
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_THAT(samples[0].callers, SizeIs(1)) << "the kernel's, whose chain Linux follows";

  auto chunks = recording::ChunkReader::Open(mapped_.bytes());
  std::optional<recording::Chunk> stacks;
  while (!stacks || stacks->header.kind != recording::ChunkKind::kStacks) stacks = chunks->Next();
  const auto timed = chunks->Next();
  EXPECT_EQ(timed->header.vcpu, stacks->header.entries_crc);
  const auto stack_of = [&timed](size_t sample) {
    constexpr size_t kSize = sizeof(recording::TimedEntry) + sizeof(recording::StackEntry);
    // The second sample, of a thread of the kernel, has none.
    const size_t at = sample == 0 ? 0 : kSize + 8 + sizeof(recording::TimedEntry) + 8;
    return *Load<recording::StackEntry>(timed->entries, at + sizeof(recording::TimedEntry));
  };
  recording::ReadStackBlock block;
  ASSERT_TRUE(block.Read(*stacks).ok());
  const auto stack = block.At(stack_of(0));
  ASSERT_TRUE(stack);
  // Linux's order is ax bx cx dx si di bp sp ip r8..r15, DWARF's ax dx cx bx si di bp sp r8..r15
  // ip.
  EXPECT_THAT(stack->registers, ElementsAre(100, 103, 102, 101, 104, 105, 106, 107, 109, 110, 111,
                                            112, 113, 114, 115, 116, 108));
  EXPECT_THAT(stack->bytes, SizeIs(16)) << "so much was filled";
  EXPECT_EQ(Load<uint64_t>(stack->bytes, 8), 2U);
  EXPECT_EQ(stack_of(2).size, 0U) << "a 32-bit program";
  const auto info = source->Info().stacks;
  ASSERT_TRUE(info);
  EXPECT_EQ(info->pieces, 1U);
  EXPECT_EQ(info->raw_bytes, sizeof(UserRegisters) + 16);
  EXPECT_EQ(info->stored_bytes, sizeof(recording::ChunkHeader) + stacks->entries.size());
}

TEST_F(PerfSourceTest, AccountsForLossesAndThrottling) {
  const auto source = Start(Request());
  kernel_.RingOf(1).Put(RecordBytes(PERF_RECORD_LOST)
                            .Add(kernel_.IdOf(1, 0))
                            .Add(uint64_t{7})
                            .Trailer(kernel_.time)
                            .Done());
  kernel_.RingOf(1).Put(
      RecordBytes(PERF_RECORD_LOST_SAMPLES).Add(uint64_t{2}).Trailer(kernel_.time).Done());
  for (const uint32_t type : {PERF_RECORD_THROTTLE, PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE}) {
    kernel_.RingOf(1).Put(RecordBytes(type)
                              .Add(kernel_.time)
                              .Add(uint64_t{0})
                              .Add(uint64_t{0})
                              .Trailer(kernel_.time)
                              .Done());
  }
  Take(1, 1);
  ASSERT_TRUE(source->Stop(*writer_).ok());
  const auto streams = source->Streams();
  ASSERT_THAT(streams, SizeIs(2));
  EXPECT_EQ(streams[1].logged.lost, 9);
  EXPECT_EQ(streams[1].ring->throttled, 2);
  EXPECT_EQ(streams[1].ring->unthrottled, 1);
  EXPECT_EQ(streams[1].kept, 1);
  EXPECT_TRUE(streams[1].Balanced());
  EXPECT_EQ(streams[0].logged.lost, 0);
}

TEST_F(PerfSourceTest, ReadsLostCountsAtTheEnd) {
  const auto source = Start(Request());
  kernel_.lost = 5;
  ASSERT_TRUE(source->Stop(*writer_).ok());
  EXPECT_EQ(source->Streams()[0].logged.lost, 5);
}

TEST_F(PerfSourceTest, CountsTruncatedRecords) {
  const auto source = Start(Request());
  kernel_.RingOf(0).Put(RecordBytes(PERF_RECORD_SAMPLE).Add(uint64_t{1}).Done());
  kernel_.RingOf(0).Put(RecordBytes(PERF_RECORD_MMAP2).Trailer(1).Done());
  kernel_.RingOf(0).Put(RecordBytes(PERF_RECORD_FORK).Done());
  Take(0, 1);
  ASSERT_TRUE(source->Stop(*writer_).ok());
  EXPECT_EQ(source->Streams()[0].ring->damaged, 3);
  EXPECT_EQ(source->Streams()[0].kept, 1);
}

TEST_F(PerfSourceTest, SampleWithoutEventIsInvalid) {
  const auto source = Start(Request());
  RecordBytes record(PERF_RECORD_SAMPLE);
  record.Add(uint64_t{9999}).Add(uint64_t{1}).Add(uint64_t{0}).Add(kernel_.time);
  kernel_.RingOf(0).Put(record.Add(uint64_t{0}).Add(uint64_t{1}).Done());
  ASSERT_TRUE(source->Stop(*writer_).ok());
  EXPECT_EQ(source->Streams()[0].invalid, 1);
  EXPECT_TRUE(source->Streams()[0].Balanced());
}

TEST_F(PerfSourceTest, RecordsProcessesAndTheirChanges) {
  const auto source = Start(Request());
  std::array<uint8_t, 24> identity{3, 0, 0, 0, 0xab, 0xcd, 0xef};
  RecordBytes map(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
  map.Add(uint32_t{50}).Add(uint32_t{51}).Add(uint64_t{0x7000}).Add(uint64_t{0x1000});
  map.Add(uint64_t{0x2000}).Add(identity).Add(uint64_t{0}).Text("/lib/libc.so");
  kernel_.RingOf(1).Put(map.Trailer(kernel_.time).Done());
  kernel_.Advance(10);
  kernel_.RingOf(0).Put(RecordBytes(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC)
                            .Add(uint32_t{50})
                            .Add(uint32_t{50})
                            .Text("cat")
                            .Trailer(kernel_.time)
                            .Done());
  kernel_.Advance(10);
  kernel_.RingOf(0).Put(RecordBytes(PERF_RECORD_FORK)
                            .Add(uint32_t{60})
                            .Add(uint32_t{50})
                            .Add(uint32_t{61})
                            .Add(uint32_t{50})
                            .Add(kernel_.time)
                            .Trailer(kernel_.time)
                            .Done());
  kernel_.Advance(10);
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const auto records = Processes();
  ASSERT_THAT(records, SizeIs(5));
  EXPECT_EQ(records[0].type, ProcessEntryType::kName);
  EXPECT_TRUE(records[0].at_start);
  EXPECT_EQ(records[0].text, "daemon");
  EXPECT_EQ(records[1].type, ProcessEntryType::kMap);
  EXPECT_EQ(records[1].map.begin, 0x400000);
  EXPECT_EQ(records[1].map.end, 0x401000);
  EXPECT_EQ(records[1].text, "/no/such/daemon");
  EXPECT_EQ(records[2].type, ProcessEntryType::kMap);
  EXPECT_EQ(records[2].pid, 50);
  EXPECT_EQ(records[2].map.offset, 0x2000);
  EXPECT_THAT(records[2].map.build_id,
              ElementsAre(std::byte{0xab}, std::byte{0xcd}, std::byte{0xef}));
  EXPECT_EQ(records[2].text, "/lib/libc.so");
  EXPECT_EQ(records[3].text, "cat");
  EXPECT_TRUE(records[3].by_exec);
  EXPECT_EQ(records[4].type, ProcessEntryType::kFork);
  EXPECT_EQ(records[4].parent, 50);
  EXPECT_EQ(records[4].tid, 61);
  EXPECT_LE(records[2].when, records[3].when);
}

// The kernel gives the file's number where it cannot read the build-id.
TEST_F(PerfSourceTest, ReadsIdsThatTheKernelDoesNotGiveWhenRecordingEnds) {
  const auto source = Start(Request());
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  struct stat info {};
  ASSERT_EQ(stat(program.c_str(), &info), 0);
  const auto put = [&](uint64_t address, uint64_t inode, const std::string& path) {
    RecordBytes map(PERF_RECORD_MMAP2);
    map.Add(uint32_t{50}).Add(uint32_t{51}).Add(address).Add(uint64_t{0x1000}).Add(uint64_t{0});
    map.Add(uint32_t{8}).Add(uint32_t{1}).Add(inode).Add(uint64_t{0}).Add(uint64_t{0}).Text(path);
    kernel_.RingOf(0).Put(map.Trailer(kernel_.time).Done());
    kernel_.Advance(10);
  };
  put(0x7000, info.st_ino, program);
  put(0x9000, info.st_ino, program);
  put(0xb000, info.st_ino + 1, program);  // another file has its place now
  put(0xd000, 0, "//anon");
  ASSERT_TRUE(source->Collect(*writer_).ok());
  ASSERT_TRUE(source->Stop(*writer_).ok());
  std::vector<std::string> files;
  for (const ProcessRecord& record : Processes()) {
    if (record.type == ProcessEntryType::kName) continue;
    files.push_back(fmt::format("{} {} {}", record.file,
                                record.text == program ? "own" : record.text,
                                record.map.build_id.size()));
  }
  EXPECT_THAT(files, ElementsAre("1 /no/such/daemon 0", "2 own 0", "2 own 0", "3 own 0",
                                 "0 //anon 0", "2 own 20"));
}

// Only of these processes a compiler's file is looked for while they run.
TEST_F(PerfSourceTest, WatchesProcessesWithCodeOfNoFile) {
  namespace fs = std::filesystem;
  const fs::path proc = fs::path(path_) / "proc";
  for (int pid = 41; pid <= 46; ++pid) {
    const fs::path process = proc / std::to_string(pid);
    fs::create_directories(process / "root/tmp");
    std::ofstream(process / "status") << fmt::format(
        "Uid:\t{0}\t{0}\t{0}\t{0}\nGid:\t{1}\t{1}\t{1}\t{1}\n", geteuid(), getegid());
    std::ofstream(process / fmt::format("root/tmp/perf-{}.map", pid)) << "1000 20 run\n";
  }
  const auto perf_maps = std::make_shared<PerfMapWatch>(proc.string(), path_ + "/tmp");
  const auto running = [] {
    return std::vector<RunningProcess>{
        {41, "cat", {{0x4000, 0x5000, 0, 9, "/no/cat"}, {0x7000, 0x8000, 0, 0, "[vdso]"}}},
        {42, "node", {{0x4000, 0x5000, 0, 0, "[anonymous]"}}}};
  };
  auto source =
      PerfSource::Open(Request(), std::make_unique<FakePerf>(kernel_), running, perf_maps);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE((*source)->Start().ok());
  uint32_t pid = 43;
  for (const char* path : {"/lib/libc.so", "[vdso]", "//anon", "/memfd:doublemapper (deleted)"}) {
    RecordBytes map(PERF_RECORD_MMAP2);
    map.Add(pid).Add(pid).Add(uint64_t{0x7000}).Add(uint64_t{0x1000}).Add(uint64_t{0});
    map.Add(uint64_t{0}).Add(uint64_t{0}).Add(uint64_t{0}).Add(uint64_t{0}).Text(path);
    kernel_.RingOf(0).Put(map.Trailer(kernel_.time).Done());
    kernel_.Advance(10);
    ++pid;
  }
  ASSERT_TRUE((*source)->Stop(*writer_).ok());
  perf_maps->Look();
  fs::remove_all(proc);
  const std::string kept = perf_maps->Read();
  for (const auto& [process, is_watched] :
       {std::pair(41, false), std::pair(42, true), std::pair(43, false), std::pair(44, false),
        std::pair(45, true), std::pair(46, true)}) {
    EXPECT_EQ(kept.find(fmt::format("# {}\n", process)) != std::string::npos, is_watched)
        << process;
  }
}

TEST_F(PerfSourceTest, RecordsOnWhoseBehalfProcessesWork) {
  PerfRequest request = Request();
  request.behalf_of = [](uint32_t pid, std::string_view name) {
    if (pid == 77 && name == "daemon") return std::optional(DomainId{4});
    return name == "3.xvda-0" ? std::optional(DomainId{3}) : std::nullopt;
  };
  const auto source = Start(request);
  for (const auto& [pid, tid] : {std::pair(90, 90), std::pair(91, 92)}) {
    kernel_.RingOf(0).Put(RecordBytes(PERF_RECORD_COMM)
                              .Add(static_cast<uint32_t>(pid))
                              .Add(static_cast<uint32_t>(tid))
                              .Text("3.xvda-0")
                              .Trailer(kernel_.time)
                              .Done());
    kernel_.Advance(10);
  }
  ASSERT_TRUE(source->Collect(*writer_).ok());
  std::vector<std::string> behalf;
  for (const ProcessRecord& record : Processes()) {
    if (record.type != ProcessEntryType::kBehalf) continue;
    behalf.push_back(fmt::format("{} for {}{}", record.pid, ToString(record.behalf),
                                 record.at_start ? " at start" : ""));
  }
  // A thread does not decide for its process.
  EXPECT_THAT(behalf, ElementsAre("77 for d4 at start", "90 for d3"));
}

TEST_F(PerfSourceTest, ErrorsHaveARemedy) {
  kernel_.open_error = -EACCES;
  EXPECT_THAT(Refusal(Request()), HasSubstr("kernel.perf_event_paranoid is 3"));
  kernel_.open_error = -EMFILE;
  EXPECT_THAT(Refusal(Request()), HasSubstr("ulimit -n"));
  kernel_.open_error = -EINVAL;
  EXPECT_THAT(Refusal(Request()), HasSubstr("50000 samples a second"));
  kernel_.open_error = -ENOSYS;
  EXPECT_THAT(Refusal(Request()), HasSubstr("CONFIG_PERF_EVENTS"));
  kernel_.open_error = 0;
  kernel_.map_error = -EPERM;
  EXPECT_THAT(Refusal(Request()), HasSubstr("perf_event_mlock_kb"));
  kernel_.map_error = 0;
  PerfRequest cycles = Request();
  cycles.events = {*ParseEventSpec("cycles")};
  EXPECT_THAT(Refusal(cycles), HasSubstr("this machine cannot count it"));
  PerfRequest moon = Request();
  moon.events = {*ParseEventSpec("moon-phase@100")};
  EXPECT_THAT(Refusal(moon), HasSubstr("xenoscope events"));
  kernel_.cpus.clear();
  EXPECT_THAT(Refusal(Request()), HasSubstr("no CPU is online"));
}

TEST_F(PerfSourceTest, ClosesEverything) {
  {
    const auto source = Start(Request());
    EXPECT_FALSE(kernel_.open.empty());
  }
  EXPECT_THAT(kernel_.open, IsEmpty());
  EXPECT_THAT(kernel_.mapped, IsEmpty());
  kernel_.open_error = -EACCES;
  Refusal(Request());
  kernel_.open_error = 0;
  kernel_.map_error = -ENOMEM;
  Refusal(Request());
  EXPECT_THAT(kernel_.open, IsEmpty());
  EXPECT_THAT(kernel_.mapped, IsEmpty());
}

TEST_F(PerfSourceTest, FallsBackOnOlderKernels) {
  kernel_.knows_build_id = false;
  kernel_.knows_lost = false;
  const auto source = Start(Request());
  Take(0, 1);
  ASSERT_TRUE(source->Stop(*writer_).ok());
  EXPECT_THAT(Addresses(), ElementsAre(1));
}

TEST_F(PerfSourceTest, SeveralEventsShareARing) {
  PerfRequest request = Request();
  request.events = {*ParseEventSpec("cpu-clock:u@500"), *ParseEventSpec("cpu-clock:k:2000000")};
  const auto source = Start(request);
  EXPECT_EQ(kernel_.rings.size(), 2);
  int user = 0;
  int kernel = 0;
  for (const auto& [fd, opened] : kernel_.open) {
    if (!opened.redirected) continue;
    EXPECT_TRUE(opened.enabled);
    EXPECT_EQ(opened.attributes.sample_period, 2'000'000);
    user += opened.attributes.exclude_kernel != 0 ? 1 : 0;
    kernel += opened.attributes.exclude_user != 0 ? 1 : 0;
  }
  EXPECT_EQ(user, 2);
  EXPECT_EQ(kernel, 2);
}

TEST_F(PerfSourceTest, GroupsAreCountedTogetherWithOneFixedPeriod) {
  kernel_.counters = true;
  PerfRequest request = Request();
  const std::vector<std::string> texts = {"cpu-clock,{cycles,instructions}"};
  request.events = *ParseEventSpecs(texts);
  const auto source = Start(request);
  std::vector<int> of_cpu;  // file descriptors of the first CPU's events
  for (const auto& [fd, opened] : kernel_.open) {
    if (opened.redirected && opened.cpu == 0) of_cpu.push_back(fd);
  }
  ASSERT_THAT(of_cpu, SizeIs(3));
  EXPECT_EQ(kernel_.open.at(of_cpu[0]).leader, PerfCalls::kNoLeader);
  EXPECT_EQ(kernel_.open.at(of_cpu[1]).leader, PerfCalls::kNoLeader);
  EXPECT_EQ(kernel_.open.at(of_cpu[2]).leader, of_cpu[1]);
  for (const int fd : {of_cpu[1], of_cpu[2]}) {
    EXPECT_EQ(kernel_.open.at(fd).attributes.freq, 0U);
    EXPECT_EQ(kernel_.open.at(fd).attributes.sample_period, 2'000'000'000 / 1013 | 1);
  }
}

TEST_F(PerfSourceTest, RandomisesPeriods) {
  for (const bool jitter : {true, false}) {
    kernel_ = FakeKernel();
    PerfRequest request = Request();
    request.jitter = jitter;
    const auto source = Start(request);
    usleep(110'000);  // periods change ten times a second
    ASSERT_TRUE(source->Collect(*writer_).ok());
    for (const auto& [fd, opened] : kernel_.open) {
      if (!opened.redirected) continue;
      if (!jitter) {
        EXPECT_EQ(opened.period, 0);
      } else {
        EXPECT_NE(opened.period, 1'000'000);
        EXPECT_GE(opened.period, 1'000'000 / 1.25 - 1);
        EXPECT_LE(opened.period, 1'000'000 / 0.75);
      }
    }
  }
}

TEST_F(PerfSourceTest, RepeatsMarksLostInAFullRing) {
  const auto source = Start(Request());
  Take(0, 1);
  kernel_.swallowed_marks = 2;
  ASSERT_TRUE(source->Collect(*writer_).ok());
  EXPECT_THAT(Addresses(), ElementsAre(1));
}

TEST_F(PerfSourceTest, FollowsCpuHotplug) {
  kernel_.cpus = {0};
  const auto source = Start(Request());
  kernel_.cpus = {0, 1};
  source->PollCpus();
  Take(1, 0x2000);
  ASSERT_TRUE(source->Collect(*writer_).ok());
  EXPECT_THAT(Addresses(), ElementsAre(0x2000));
  for (const auto& [fd, opened] : kernel_.open) EXPECT_TRUE(opened.enabled) << fd;
  kernel_.cpus = {0};
  kernel_.lost = 3;
  source->PollCpus();
  EXPECT_THAT(kernel_.mapped, SizeIs(1));
  for (const auto& [fd, opened] : kernel_.open) EXPECT_EQ(opened.cpu, 0);
  kernel_.lost = 0;
  kernel_.cpus = {0, 1};
  source->PollCpus();  // again, with other files
  EXPECT_THAT(kernel_.mapped, SizeIs(2));
  ASSERT_TRUE(source->Stop(*writer_).ok());
  const std::vector<recording::StreamInfo> streams = source->Streams();
  ASSERT_THAT(streams, SizeIs(2));
  EXPECT_EQ(streams[1].vcpu.vcpu, VcpuId{1});
  EXPECT_EQ(streams[1].kept, 1U);
  EXPECT_EQ(streams[1].logged.lost, 3U);
  EXPECT_TRUE(streams[1].Balanced());
  EXPECT_THAT(source->FinalNotes(), IsEmpty());
  EXPECT_THAT(kernel_.open, IsEmpty());
}

TEST_F(PerfSourceTest, ReportsFailedHotplugOnce) {
  kernel_.cpus = {0};
  const auto source = Start(Request());
  kernel_.cpus = {0, 5};
  kernel_.open_error = -EBUSY;
  source->PollCpus();
  source->PollCpus();
  EXPECT_THAT(source->FinalNotes(), ElementsAre(HasSubstr("CPU 5 came online")));
  EXPECT_THAT(kernel_.mapped, SizeIs(1));
  EXPECT_TRUE(source->Stop(*writer_).ok());
}

// Linux marks the samples from Xen (arch/x86/xen/pmu.c): those of other domains are of a guest;
// those of Xen look like its own kernel's.
TEST_F(PerfSourceTest, VpmuForAllGivesSamplesWithoutDomain) {
  kernel_.vpmu = "all";
  kernel_.counters = true;
  PerfRequest request = Request();
  request.vpmu_problems = {"dom0's vCPUs are not pinned"};
  const auto source = Start(request);
  constexpr Address kXen = 0xffff'82d0'4020'0000;
  constexpr Address kLinux = 0xffff'ffff'8100'0000;
  Take(0, 0x1000);
  Take(1, 0x2000, PERF_RECORD_MISC_GUEST_USER);
  Take(1, kLinux, PERF_RECORD_MISC_GUEST_KERNEL);
  Take(1, kXen, PERF_RECORD_MISC_KERNEL);
  Take(0, kLinux, PERF_RECORD_MISC_KERNEL);
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const std::vector<Sample> samples = Samples();
  ASSERT_THAT(samples, SizeIs(5));
  std::vector<std::string> found;
  for (const Sample& sample : samples) {
    found.push_back(fmt::format("{} {} {:x} {} {}", ToString(sample.vcpu), ToString(sample.mode),
                                sample.address, sample.pcpu ? int(sample.pcpu->value) : -1,
                                sample.thread.has_value()));
    EXPECT_TRUE(sample.timed);
  }
  EXPECT_THAT(found, testing::UnorderedElementsAre(
                         "d0v0 user 1000 -1 true", "d0v0 kernel ffffffff81000000 -1 true",
                         "d32754v1 user 2000 1 false", "d32754v1 kernel ffffffff81000000 1 false",
                         "d32754v1 xen ffff82d040200000 1 false"));
  ASSERT_TRUE(source->Stop(*writer_).ok());
  EXPECT_EQ(source->Streams()[1].logged.xen, 1U);
  EXPECT_TRUE(source->Streams()[1].Balanced());
  EXPECT_EQ(source->Info().cpu_type, "vpmu:all");
  EXPECT_THAT(source->Notes(), testing::Contains("source perf: dom0's vCPUs are not pinned"));
}

TEST_F(PerfSourceTest, VpmuDoesNotConcernLinuxsTimer) {
  PerfRequest request = Request();
  request.vpmu_problems = {"dom0's vCPUs are not pinned"};
  const auto source = Start(request);
  EXPECT_THAT(source->Notes(), testing::Not(testing::Contains(HasSubstr("pinned"))));
  ASSERT_TRUE(source->Stop(*writer_).ok());
}

// Its kernel runs in ring 3, as its programs do, and ring 0 is Xen's.
TEST_F(PerfSourceTest, FiltersModesInPvDomain) {
  kernel_.is_pv = true;
  const auto source = Start(CyclesIn("k"));
  const perf_event_attr& attributes = kernel_.open.rbegin()->second.attributes;
  EXPECT_EQ(attributes.exclude_user, 0);
  EXPECT_EQ(attributes.exclude_kernel, 1);
  EXPECT_THAT(source->Notes(), ElementsAre(HasSubstr("cycles: in PV domains")));
  Take(0, 0x1000);
  Take(0, 0xffff'ffff'8100'0000, PERF_RECORD_MISC_KERNEL);
  ASSERT_TRUE(source->Collect(*writer_).ok());
  EXPECT_THAT(Addresses(), ElementsAre(0xffff'ffff'8100'0000));
  ASSERT_TRUE(source->Stop(*writer_).ok());
  EXPECT_EQ(source->Events()[0].modes, (ModeSet{.kernel = true}));
  EXPECT_EQ(source->Streams()[0].other_modes, 1U);
  EXPECT_EQ(source->Streams()[0].kept, 1U);
  EXPECT_TRUE(source->Streams()[0].Balanced());
}

TEST_F(PerfSourceTest, CountsRingsInPvDomain) {
  struct Case {
    std::string vpmu;
    std::string letters;
    bool ring0;
    bool ring3;
  };
  for (const Case& each : std::vector<Case>{{"self", "ukh", true, true},
                                            {"self", "u", false, true},
                                            {"self", "uk", false, true},
                                            {"hv", "h", true, false},
                                            {"hv", "k", false, true},
                                            {"hv", "uh", true, true},
                                            {"all", "k", true, true},
                                            {"all", "u", false, true},
                                            {"all", "h", true, false}}) {
    SCOPED_TRACE(each.vpmu + ":" + each.letters);
    kernel_ = FakeKernel();
    kernel_.vpmu = each.vpmu;
    const auto source = Start(CyclesIn(each.letters));
    const perf_event_attr& attributes = kernel_.open.rbegin()->second.attributes;
    EXPECT_EQ(attributes.exclude_kernel == 0, each.ring0);
    EXPECT_EQ(attributes.exclude_user == 0, each.ring3);
    EXPECT_EQ(source->Events()[0].modes->kernel, each.letters.find('k') != each.letters.npos);
  }
}

TEST_F(PerfSourceTest, RefusesXenWhereVpmuHasNoSamplesOfIt) {
  kernel_.vpmu = "self";
  EXPECT_THAT(Refusal(CyclesIn("kh")), HasSubstr("leave out h, or write hv to"));
}

// Linux's timer looks at what it interrupted, and counts what Xen did as the kernel's.
TEST_F(PerfSourceTest, TimerRecordsRequestedModes) {
  kernel_.is_pv = true;
  PerfRequest request = Request();
  request.events = {*ParseEventSpec("cpu-clock:u@500"), *ParseEventSpec("cpu-clock:uk@500"),
                    *ParseEventSpec("cpu-clock:kh@500")};
  const auto source = TryOpen(request);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<recording::EventInfo> events = (*source)->Events();
  EXPECT_EQ(events[0].modes, (ModeSet{.user = true}));
  EXPECT_EQ(events[1].modes, kAllModes);
  EXPECT_EQ(events[2].modes, (ModeSet{.kernel = true}));
  EXPECT_THAT((*source)->Notes(), testing::IsEmpty());
}

TEST_F(PerfSourceTest, KnowsWhetherItSamplesXen) {
  for (const char* const mode : {"", "off", "self", "hv", "all"}) {
    SCOPED_TRACE(mode);
    kernel_ = FakeKernel();
    kernel_.vpmu = mode;
    const bool has = kernel_.vpmu == "hv" || kernel_.vpmu == "all";
    EXPECT_EQ(Start(CyclesIn("ukh"))->SamplesXen(), has);
    EXPECT_FALSE(Start(CyclesIn("u"))->SamplesXen());
    kernel_.counters = false;
    EXPECT_FALSE(Start(Request())->SamplesXen());  // Linux's timer
  }
}

TEST_F(PerfSourceTest, VpmuForDom0IncludesXen) {
  kernel_.vpmu = "hv";
  const auto source = Start(Request());
  Take(0, 0xffff'82d0'4020'0000, PERF_RECORD_MISC_KERNEL);
  Take(0, 0xffff'82d0'4020'0010, PERF_RECORD_MISC_USER);  // dom0 was in user mode
  ASSERT_TRUE(source->Collect(*writer_).ok());
  const std::vector<Sample> samples = Samples();
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples[0].vcpu, (VcpuRef{kDom0, VcpuId{0}}));
  for (const Sample& sample : samples) EXPECT_EQ(sample.mode, Mode::kXen);
  EXPECT_EQ(source->Info().cpu_type, "vpmu:hv");
}

TEST(PerfEventsTest, EncodesHardwareEventsLikeLibpfm4) {
  const auto resolve = [](std::string_view text) {
    const auto event = ResolvePerfEvent(*ParseEventSpec(text));
    EXPECT_TRUE(event.ok()) << event.status();
    return event.ok() ? *event : PerfEvent{};
  };
  // AMD's CPU Clocks not Halted, 76h, and Data Cache Misses, 41h with the unit mask 1.
  const PerfEvent cycles = resolve("amd64_fam15h_interlagos::cpu_clk_unhalted:k:100000");
  EXPECT_EQ(cycles.attributes.type, PERF_TYPE_RAW);
  EXPECT_EQ(cycles.attributes.config & 0xffff, 0x0076);
  EXPECT_EQ(cycles.attributes.sample_period, 100'000U);
  EXPECT_EQ(cycles.attributes.exclude_user, 1);
  EXPECT_EQ(cycles.attributes.exclude_kernel, 0);
  const PerfEvent misses =
      resolve("amd64_fam15h_interlagos::data_cache_misses:dc_miss_streaming_store@500");
  EXPECT_EQ(misses.attributes.config & 0xffff, 0x0141);
  EXPECT_EQ(misses.attributes.freq, 1);
  EXPECT_EQ(misses.attributes.sample_freq, 500U);
  // Intel's L2 Lines In, 24h.
  const PerfEvent cache = resolve("core::l2_lines_in:self:any:u");
  EXPECT_EQ(cache.attributes.config & 0xff, 0x24);
  EXPECT_EQ(cache.attributes.exclude_kernel, 1);
  EXPECT_FALSE(cache.is_timer);
}

}  // namespace
}  // namespace xenoscope::sampler
