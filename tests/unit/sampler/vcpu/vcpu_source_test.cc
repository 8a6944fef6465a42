// The vcpu source with simulated guests.
#include "sampler/vcpu/vcpu_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "recording/chunk_reader.h"
#include "recording/sample_reader.h"
#include "recording/stack_block.h"
#include "tests/unit/sampler/fake_memory.h"

namespace xenoscope::sampler {
namespace {

using recording::Sample;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr VcpuRef kD1V0{DomainId{1}, VcpuId{0}};
constexpr VcpuRef kD2V0{DomainId{2}, VcpuId{0}};

struct FakeGuest {
  VcpuState state{true, false, true};
  VcpuContext context{0x1000, Mode::kUser};
  int state_error = 0;
  int context_error = 0;
  uint64_t runs_before_stop = 0;  // ns
  bool dying = false;
};

// Each stop costs 50 cycles, and reading the clock 1.
class FakeVcpuCalls final : public VcpuCalls {
 public:
  FakeVcpuCalls(std::map<VcpuRef, FakeGuest>& guests, uint64_t& tsc) : guests_(guests), tsc_(tsc) {}
  int Domain(DomainId domain, DomainState& state) override {
    state.dying = guests_.at({domain, VcpuId{0}}).dying;
    return 0;
  }
  int State(VcpuRef vcpu, VcpuState& state) override {
    state = guests_.at(vcpu).state;
    return guests_.at(vcpu).state_error;
  }
  int Context(VcpuRef vcpu, VcpuContext& context) override {
    tsc_ += 50;
    guests_.at(vcpu).state.ran_ns += guests_.at(vcpu).runs_before_stop;
    context = guests_.at(vcpu).context;
    return guests_.at(vcpu).context_error;
  }
  int Affinity(VcpuRef /*vcpu*/, std::vector<uint32_t>& /*pcpus*/) override { return -ENOSYS; }

 private:
  std::map<VcpuRef, FakeGuest>& guests_;
  uint64_t& tsc_;
};

class VcpuSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / "vcpu_source_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  static VcpuRequest Request(uint32_t pcpus = 2) {
    VcpuRequest request;
    request.domains = {{.id = DomainId{1},
                        .name = "a",
                        .type = recording::DomainType::kPv,
                        .role = recording::Role::kNone,
                        .vcpus = 1},
                       {.id = DomainId{2},
                        .name = "b",
                        .type = recording::DomainType::kPvh,
                        .role = recording::Role::kNone,
                        .vcpus = 1}};
    request.poll_hz = 100;
    request.seed = 7;
    request.first_event = 3;
    request.clock_hz = 1'000'000'000;
    request.pcpus = pcpus;
    return request;
  }
  std::unique_ptr<VcpuSource> Open(const VcpuRequest& request) { return Open(request, nullptr); }
  std::unique_ptr<VcpuSource> Open(const VcpuRequest& request,
                                   std::unique_ptr<GuestMemory> memory) {
    auto source = VcpuSource::Open(request, std::make_unique<FakeVcpuCalls>(guests_, tsc_),
                                   std::move(memory), [this] { return Tsc{++tsc_}; });
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  // Returns the addresses of a sample's callers.
  static std::vector<Address> CallersOf(const Sample& sample) {
    std::vector<Address> callers;
    for (size_t i = 0; i < sample.callers.size(); ++i) callers.push_back(sample.callers.at(i));
    return callers;
  }
  // Polls `polls` times, and returns the samples that were written; their callers are in `file_`.
  std::vector<Sample> Poll(VcpuSource& source, int polls) {
    const std::string file = path_ + "/vcpu.samples";
    auto writer = recording::SampleWriter::Create(file);
    EXPECT_TRUE(source.Start().ok());
    for (int i = 0; i < polls; ++i) EXPECT_TRUE(source.Collect(*writer).ok());
    EXPECT_TRUE(source.Stop(*writer).ok());
    EXPECT_TRUE(writer->Flush().ok());
    file_ = *MappedFile::Open(file);
    auto reader = recording::SampleReader::Open(file_->bytes(), 5);
    std::vector<Sample> samples;
    while (const auto sample = reader->Next()) samples.push_back(*sample);
    EXPECT_FALSE(reader->damage().Any());
    std::filesystem::remove(file);
    return samples;
  }

  std::map<VcpuRef, FakeGuest> guests_{{kD1V0, {}}, {kD2V0, {}}};
  uint64_t tsc_ = 1000;
  std::optional<MappedFile> file_;
  std::string path_;
};

TEST_F(VcpuSourceTest, RunningVcpuIsASampleWithItsPause) {
  guests_[kD1V0].context = guests_[kD2V0].context = {0x1234, Mode::kKernel};
  const auto source = Open(Request());
  const std::vector<Sample> samples = Poll(*source, 1);
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_EQ(samples[0].address, 0x1234U);
  EXPECT_EQ(samples[0].mode, Mode::kKernel);
  EXPECT_EQ(samples[0].event, 3);  // vcpu-running
  EXPECT_TRUE(samples[0].stopped);
  // It started at 1001, and polled from 1002 to 1053.
  EXPECT_EQ(samples[0].when, (TscRange{Tsc{1002}, Tsc{1054}}));
  EXPECT_EQ(source->Sampled(), (TscRange{Tsc{1001}, Tsc{1054}}));
}

TEST_F(VcpuSourceTest, RunnableVcpuIsASeparateEvent) {
  guests_[kD1V0].state = guests_[kD2V0].state = {true, false, false};
  const auto source = Open(Request());
  const std::vector<Sample> samples = Poll(*source, 1);
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_EQ(samples[0].event, 4);
  EXPECT_EQ(source->Events()[1].name, "vcpu-preempted");
  EXPECT_TRUE(source->Events()[1].waiting);
}

TEST_F(VcpuSourceTest, CountsBlockedAndOfflineVcpus) {
  guests_[kD1V0].state = {true, true, false};
  guests_[kD2V0].state = {false, false, false};
  const auto source = Open(Request());
  EXPECT_THAT(Poll(*source, 100), IsEmpty());
  for (const recording::StreamInfo& stream : source->Streams()) {
    EXPECT_EQ(stream.polls->blocked, stream.polls->total);
    EXPECT_GT(stream.polls->total, 20U);  // of 100, by chance
    EXPECT_EQ(stream.polls->stopped_cycles, 0U);
  }
}

TEST_F(VcpuSourceTest, SumsPausesByVcpu) {
  guests_[kD2V0].state = {true, true, false};
  const auto source = Open(Request());
  const std::vector<Sample> samples = Poll(*source, 50);
  const recording::StreamInfo stream = source->Streams()[0];
  EXPECT_EQ(stream.polls->running, samples.size());
  EXPECT_EQ(stream.polls->stopped_cycles, 51 * samples.size());
  EXPECT_EQ(stream.polls->longest_stop, 51U);
  EXPECT_EQ(stream.kept, samples.size());
  EXPECT_TRUE(stream.complete);
  EXPECT_TRUE(stream.Balanced());
}

TEST_F(VcpuSourceTest, DoesNotPollDestroyedDomain) {
  guests_[kD1V0].state_error = -ESRCH;
  guests_[kD2V0].context_error = -ESRCH;
  const auto source = Open(Request());
  EXPECT_THAT(Poll(*source, 100), IsEmpty());
  for (const recording::StreamInfo& stream : source->Streams()) {
    EXPECT_EQ(stream.polls->total, 1U);
    EXPECT_EQ(stream.polls->failed, 1U);
    EXPECT_TRUE(stream.polls->gone);
  }
}

TEST_F(VcpuSourceTest, CountsAndRetriesRefusals) {
  guests_[kD1V0].context_error = guests_[kD2V0].context_error = -EINVAL;
  const auto source = Open(Request());
  EXPECT_THAT(Poll(*source, 10), IsEmpty());
  EXPECT_EQ(source->Streams()[0].polls->failed + source->Streams()[1].polls->failed, 10U);
  EXPECT_FALSE(source->Streams()[0].polls->gone);
}

TEST_F(VcpuSourceTest, SameSeedPollsSameVcpus) {
  std::vector<VcpuRef> first;
  for (const Sample& sample : Poll(*Open(Request()), 20)) first.push_back(sample.vcpu);
  std::vector<VcpuRef> again;
  for (const Sample& sample : Poll(*Open(Request()), 20)) again.push_back(sample.vcpu);
  EXPECT_EQ(first, again);
  VcpuRequest other = Request();
  other.seed = 8;
  std::vector<VcpuRef> different;
  for (const Sample& sample : Poll(*Open(other), 20)) different.push_back(sample.vcpu);
  EXPECT_NE(first, different);
}

TEST_F(VcpuSourceTest, InfoNamesTheSourceAndItsRate) {
  const auto source = Open(Request());
  EXPECT_EQ(source->Info().name, "vcpu");
  EXPECT_EQ(source->Info().seed, 7U);
  EXPECT_EQ(source->Info().drain_interval_ns, 10'000'000U);
  EXPECT_EQ(source->Events()[0].clocked_by, "vcpu:100");
  EXPECT_EQ(source->Events()[0].period, 10'000'000U);
  EXPECT_EQ(source->RoleOf(DomainId{2}), recording::Role::kPassive);
  EXPECT_EQ(source->RoleOf(kDom0), recording::Role::kNone);
  EXPECT_THAT(source->Notes(), IsEmpty());
  EXPECT_THAT(Open(Request(/*pcpus=*/1))->Notes(), ElementsAre(HasSubstr("one pCPU")));
}

TEST_F(VcpuSourceTest, PeriodIsOfActualPolls) {
  const auto source = Open(Request());
  Poll(*source, 50);  // 52 cycles from poll to poll, and twice as many for one vCPU
  EXPECT_EQ(source->Sampled().Length(), 50U * 52 + 1);
  EXPECT_EQ(source->Events()[0].period, 104U);
  EXPECT_EQ(source->Events()[1].period, 104U);
}

TEST_F(VcpuSourceTest, ReadsCallersFromStack) {
  FakeRam ram;
  constexpr Address kStack = 0x7ffc'0000'1000;
  ram.Push(kStack + 0x20, kStack + 0x60, 0x402000);
  ram.Push(kStack + 0x60, 0, 0x403000);
  guests_[kD1V0].context = {.address = 0x401000,
                            .mode = Mode::kUser,
                            .stack = kStack,
                            .frame = kStack + 0x20,
                            .page_tables = FakeRam::kRoot << 12};
  guests_[kD2V0].state = {true, true, false};
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  const std::vector<Sample> samples = Poll(*source, 40);
  ASSERT_FALSE(samples.empty());
  for (const Sample& sample : samples) {
    EXPECT_THAT(CallersOf(sample), ElementsAre(0x402000, 0x403000));
    EXPECT_EQ(sample.callers.ModeAt(0), Mode::kUser);
    EXPECT_TRUE(sample.stopped);
    EXPECT_FALSE(sample.timed);
    EXPECT_EQ(sample.vcpu, kD1V0);
    EXPECT_EQ(sample.when.Length(), 52U);  // as long as the stop, and not the walk
  }
  const recording::StreamInfo stream = source->Streams()[0];
  EXPECT_EQ(stream.polls->callers, 2 * samples.size());
  EXPECT_EQ(stream.polls->cut_chains, 0U);
  EXPECT_TRUE(stream.Balanced());
  EXPECT_EQ(ram.mapped, 0);  // since it was stopped
}

TEST_F(VcpuSourceTest, RecordsTheStacksFromWhichAnotherWasEntered) {
  FakeRam ram;
  constexpr Address kInterrupted = 0xffff'c900'0010'0ff0;
  constexpr Address kStack = 0xffff'c900'0000'1ff0;
  ram.Write(kStack, 11);
  ram.Write(kStack + 8, kInterrupted);  // the last word: the page behind it is not mapped
  ram.Write(kInterrupted, 12);
  guests_[kD1V0].context = {.address = 0xffff'ffff'8100'0000,
                            .mode = Mode::kKernel,
                            .stack = kStack,
                            .page_tables = FakeRam::kRoot << 12};
  guests_[kD2V0].state = {true, true, false};
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  auto writer = recording::SampleWriter::Create(path_ + "/vcpu.samples");
  ASSERT_TRUE(source->Start().ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(source->Collect(*writer).ok());
  ASSERT_TRUE(source->Stop(*writer).ok());
  ASSERT_TRUE(writer->Flush().ok());

  const auto file = MappedFile::Open(path_ + "/vcpu.samples");
  auto chunks = recording::ChunkReader::Open(file->bytes());
  recording::ReadStackBlock block;
  uint64_t samples = 0;
  while (const auto chunk = chunks->Next()) {
    if (chunk->header.kind == recording::ChunkKind::kStacks) {
      ASSERT_TRUE(block.Read(*chunk).ok());
      continue;
    }
    ++samples;
    constexpr size_t kOuterAt = sizeof(recording::TimedEntry) + sizeof(recording::StackEntry);
    EXPECT_EQ(Load<recording::TimedEntry>(chunk->entries, 0)->size,
              kOuterAt + sizeof(recording::OuterStackEntry));
    const auto outer = Load<recording::OuterStackEntry>(chunk->entries, kOuterAt);
    ASSERT_TRUE(outer.has_value());
    EXPECT_EQ(outer->address, kInterrupted);
    ASSERT_TRUE(block.OuterAt(*outer));
    EXPECT_THAT(*block.OuterAt(*outer), SizeIs(16));
    EXPECT_EQ(Load<uint64_t>(*block.OuterAt(*outer), 0), 12U);
  }
  EXPECT_GT(samples, 5U);
  EXPECT_EQ(source->Info().stacks->pieces, samples);
}

TEST_F(VcpuSourceTest, RecordsStacksOfKernels) {
  FakeRam ram;
  constexpr Address kStack = 0xffff'c900'0000'1ff0;
  ram.Write(kStack, 11);
  ram.Write(kStack + 8, 12);
  guests_[kD1V0].context = {.address = 0xffff'ffff'8100'0000,
                            .mode = Mode::kKernel,
                            .stack = kStack,
                            .page_tables = FakeRam::kRoot << 12};
  guests_[kD1V0].context.registers[kRsp] = kStack;
  guests_[kD2V0].state = {true, true, false};
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  auto writer = recording::SampleWriter::Create(path_ + "/vcpu.samples");
  ASSERT_TRUE(source->Start().ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(source->Collect(*writer).ok());
  ASSERT_TRUE(source->Stop(*writer).ok());
  ASSERT_TRUE(writer->Flush().ok());

  const auto file = MappedFile::Open(path_ + "/vcpu.samples");
  auto chunks = recording::ChunkReader::Open(file->bytes());
  uint64_t stacks = 0;
  uint32_t crc = 0;
  while (const auto chunk = chunks->Next()) {
    if (chunk->header.kind == recording::ChunkKind::kStacks) {
      ++stacks;
      crc = chunk->header.entries_crc;
      recording::ReadStackBlock block;
      ASSERT_TRUE(block.Read(*chunk).ok());
      const auto stack = block.At({0, chunk->header.items});
      ASSERT_TRUE(stack.has_value());
      EXPECT_EQ(stack->registers[kRsp], kStack);
      EXPECT_THAT(stack->bytes, SizeIs(16)) << "up to the page that is not mapped";
      EXPECT_EQ(Load<uint64_t>(stack->bytes, 8), 12U);
    } else {
      EXPECT_EQ(chunk->header.kind, recording::ChunkKind::kStoppedWithCallers);
      EXPECT_EQ(chunk->header.vcpu, crc);
    }
  }
  EXPECT_GT(stacks, 5U);
  const auto info = source->Info().stacks;
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->pieces, stacks);
  EXPECT_EQ(info->left_out, 0U);
}

TEST_F(VcpuSourceTest, KeepsSampleWithoutReadableStack) {
  FakeRam ram;
  guests_[kD1V0].context = guests_[kD2V0].context = {
      0x401000, Mode::kUser, 0x7ffc'0000'1000, 0x7ffc'0000'1020, 0x9999'9000, false};
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  const std::vector<Sample> samples = Poll(*source, 20);
  EXPECT_THAT(samples, SizeIs(20));
  EXPECT_THAT(CallersOf(samples[0]), IsEmpty());
  EXPECT_EQ(source->Streams()[0].polls->cut_chains + source->Streams()[1].polls->cut_chains, 20U);
}

TEST_F(VcpuSourceTest, NoCallersWhenVcpuHasRun) {
  FakeRam ram;
  ram.Push(0x7ffc'0000'1020, 0, 0x402000);
  ram.on_map = [this] {  // five times
    guests_[kD1V0].state.ran_ns += 50'000;
    tsc_ += 50'000;
  };
  guests_[kD1V0].context = {.address = 0x401000,
                            .mode = Mode::kUser,
                            .stack = 0x7ffc'0000'1000,
                            .frame = 0x7ffc'0000'1020,
                            .page_tables = FakeRam::kRoot << 12};
  guests_[kD2V0].state = {true, true, false};
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  const std::vector<Sample> samples = Poll(*source, 40);
  ASSERT_GT(samples.size(), 2U);
  EXPECT_THAT(CallersOf(samples[0]), IsEmpty());
  EXPECT_THAT(CallersOf(samples[1]), ElementsAre(0x402000));  // it is mapped now
  EXPECT_EQ(source->Streams()[0].polls->cut_chains, 1U);
}

TEST_F(VcpuSourceTest, CallersWhenVcpuHasRunBeforeTheStop) {
  FakeRam ram;
  ram.Push(0x7ffc'0000'1020, 0, 0x402000);
  guests_[kD1V0].context = {.address = 0x401000,
                            .mode = Mode::kUser,
                            .stack = 0x7ffc'0000'1000,
                            .frame = 0x7ffc'0000'1020,
                            .page_tables = FakeRam::kRoot << 12};
  guests_[kD1V0].runs_before_stop = 10'000'000;
  guests_[kD2V0].state = {true, true, false};
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  for (const Sample& sample : Poll(*source, 20)) {
    EXPECT_THAT(CallersOf(sample), ElementsAre(0x402000));
  }
  EXPECT_EQ(source->Streams()[0].polls->cut_chains, 0U);
}

TEST_F(VcpuSourceTest, PollsDomainsCreatedLater) {
  guests_[kD1V0].state = guests_[kD2V0].state = {true, true, false};
  const VcpuRef late{DomainId{3}, VcpuId{1}};
  guests_[{DomainId{3}, VcpuId{0}}] = guests_[late] = {};
  const auto source = Open(Request());
  auto writer = recording::SampleWriter::InMemory();
  ASSERT_TRUE(source->Start().ok());
  tsc_ += 10'000;
  EXPECT_TRUE(source
                  ->OnDomainCreated({.id = DomainId{3},
                                     .name = "c",
                                     .type = recording::DomainType::kPv,
                                     .role = recording::Role::kNone,
                                     .vcpus = 2})
                  .ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(source->Collect(writer).ok());
  ASSERT_TRUE(source->Stop(writer).ok());
  EXPECT_EQ(source->RoleOf(DomainId{3}), recording::Role::kPassive);
  const std::vector<recording::StreamInfo> streams = source->Streams();
  ASSERT_THAT(streams, SizeIs(4));
  EXPECT_EQ(streams[3].vcpu, late);
  EXPECT_GT(streams[3].polls->running, 10U);
  // The time of each vCPU counts from when it existed: for two of four 10000 cycles less.
  const Cycles all = source->Sampled().Length();
  EXPECT_NEAR(static_cast<double>(source->Events()[0].period),
              static_cast<double>(4 * all - 2 * 10'000) / 100, 1);
}

TEST_F(VcpuSourceTest, UnmapsMemoryOfDestroyedDomain) {
  FakeRam ram;
  ram.Push(0x7ffc'0000'1020, 0, 0x402000);
  guests_[kD1V0].context = guests_[kD2V0].context = {
      0x401000, Mode::kUser, 0x7ffc'0000'1000, 0x7ffc'0000'1020, FakeRam::kRoot << 12, false};
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  const std::string file = path_ + "/vcpu.samples";
  auto writer = recording::SampleWriter::Create(file);
  ASSERT_TRUE(source->Start().ok());
  ASSERT_TRUE(source->Collect(*writer).ok());
  EXPECT_GT(ram.mapped, 0);
  guests_[kD1V0].state_error = guests_[kD2V0].state_error = -ESRCH;
  ASSERT_TRUE(source->Collect(*writer).ok());
  EXPECT_EQ(ram.mapped, 0);
}

// Xen keeps a domain that is being destroyed, and lists its vCPUs, as long as its memory is mapped.
TEST_F(VcpuSourceTest, LeavesDyingDomain) {
  FakeRam ram;
  guests_[kD1V0].dying = true;
  const auto source = Open(Request(), std::make_unique<FakeMemory>(ram));
  const std::vector<Sample> samples = Poll(*source, 20);
  EXPECT_THAT(samples, SizeIs(20));
  for (const Sample& sample : samples) EXPECT_EQ(sample.vcpu, kD2V0);
  EXPECT_TRUE(source->Streams()[0].polls->gone);
  EXPECT_FALSE(source->Streams()[1].polls->gone);
}

TEST_F(VcpuSourceTest, RefusesToPollNoVcpus) {
  VcpuRequest request = Request();
  request.domains.clear();
  const auto source = VcpuSource::Open(request, std::make_unique<FakeVcpuCalls>(guests_, tsc_),
                                       nullptr, [this] { return Tsc{++tsc_}; });
  EXPECT_TRUE(absl::IsNotFound(source.status()));
}

}  // namespace
}  // namespace xenoscope::sampler
