// Samples with stacks become samples with callers, and all else of a recording stays as it is.
#include "profile/unwound_samples.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_recording.h"
#include "profile/recorded_samples.h"
#include "symbolizer/load.h"

namespace xenoscope::profile {
namespace {

using recording::Recording;
using recording::StackEntry;
using testing::ElementsAre;

class UnwoundSamples : public testing::Test {
 protected:
  UnwoundSamples() {
    recorded_.info.sources[0].stacks.emplace();
    recorded_.Exec(1, 7, "web");
  }
  // A sample at `address` with a stack of these words and the frame pointer at its begin.
  void AddSample(uint64_t when, Mode mode, Address address, const std::vector<uint64_t>& words) {
    recording::UserStack stack;
    stack.registers[kRip] = mode == Mode::kUser ? address : 0x1500;
    stack.registers[kRsp] = stack.registers[kRbp] = 0x8000;
    stack.bytes = std::as_bytes(std::span(words));
    recording::TimedEntry entry;
    entry.address = address;
    entry.mode = static_cast<uint8_t>(mode);
    entry.pid = entry.tid = 7;
    entry.begin = when;
    entry.end = when + 1;
    chunk_.Add(entry, words.empty() ? StackEntry() : block_.Add(stack), {});
  }
  void WriteChunk() {
    recorded_.Stacks(chunk_, block_);
    chunk_.Clear();
    block_.Clear();
  }

  // What the samples are after unwinding: the address, then the callers.
  std::vector<std::vector<Address>> Chains(Recording& recording) {
    auto processes = RecordedProcesses::Read(recording);
    symbolizer::ProcessImages& images = symbols_->processes();
    // Anonymous executable memory: no table, so that frame pointers are followed.
    const uint32_t file = images.AddFile(kD1, "//anon", "");
    images.SetMaps(processes->SpaceOf(kD1, 7, Tsc{5}), kD1, 7, {{0x1000, 0x2000, 0, file}});
    auto counts = UnwindStacks(recording, *processes, *symbols_);
    EXPECT_TRUE(counts.ok()) << counts.status();
    counts_ = counts->user;
    guest_programs_ = counts->guest_programs;
    kernels_ = counts->kernels;
    auto samples = RecordedSamples::Open(recording, {}, &*processes);
    std::vector<std::vector<Address>> chains;
    while (const recording::Sample* sample = samples->Next()) {
      std::vector<Address>& chain = chains.emplace_back();
      chain.push_back(sample->address);
      for (size_t i = 0; i < sample->callers.size(); ++i) chain.push_back(sample->callers.at(i));
    }
    return chains;
  }

  FakeRecording recorded_;
  recording::TimedChunk chunk_;
  recording::StackBlock block_;
  std::unique_ptr<symbolizer::DomainSymbols> symbols_ =
      std::make_unique<symbolizer::DomainSymbols>();
  UnwindCounts counts_;
  UnwindCounts guest_programs_;
  std::map<DomainId, KernelUnwindCounts> kernels_;
};

constexpr Address kEnd = 0;  // the return address of the outermost function

TEST_F(UnwoundSamples, HaveCallersAndSayWhereTheyEnd) {
  AddSample(10, Mode::kUser, 0x1000, {0x8010, 0x1100, 0x8020, kEnd});
  AddSample(11, Mode::kKernel, 0xffffffff81000000, {0x8010, 0x1100, 0x8020, kEnd});
  AddSample(12, Mode::kUser, 0x1000, {0x8010, 0x1100});
  AddSample(13, Mode::kUser, 0x1000, {});
  WriteChunk();
  recorded_.Sample(14, 15, 0xffffffff81000000);
  Recording recording = recorded_.Open();
  EXPECT_THAT(
      Chains(recording),
      ElementsAre(ElementsAre(0x1000, 0x1100), ElementsAre(0xffffffff81000000, 0x1500, 0x1100),
                  ElementsAre(0x1000, 0x1100, AddressOf(ChainEnd::kNoTable)),
                  ElementsAre(0x1000, AddressOf(ChainEnd::kNoStack)),
                  ElementsAre(0xffffffff81000000)));
  EXPECT_EQ(counts_.of(ChainEnd::kOutermost), 2U);
  EXPECT_EQ(counts_.of(ChainEnd::kNoTable), 1U);
  EXPECT_EQ(counts_.of(ChainEnd::kNoStack), 1U);
  EXPECT_EQ(counts_.Chains(), 4U);
  EXPECT_EQ(counts_.by_frame_pointer, 3U);
}

TEST_F(UnwoundSamples, KeepTheOrderOfManyChunks) {
  for (uint64_t i = 0; i < 200; ++i) {
    AddSample(10 + i, Mode::kUser, 0x1000 + i, {0x8010, 0x1100, 0x8020, kEnd});
    WriteChunk();
  }
  Recording recording = recorded_.Open();
  const auto chains = Chains(recording);
  ASSERT_THAT(chains, testing::SizeIs(200));
  for (size_t i = 0; i < 200; ++i) EXPECT_THAT(chains[i], ElementsAre(0x1000 + i, 0x1100));
}

TEST_F(UnwoundSamples, StayWhereTheirStacksAreDamaged) {
  AddSample(10, Mode::kUser, 0x1000, {0x8010, 0x1100, 0x8020, kEnd});
  WriteChunk();
  AddSample(11, Mode::kUser, 0x1001, {0x8010, 0x1100, 0x8020, kEnd});
  WriteChunk();
  recorded_.Damage(recording::ChunkKind::kStacks, /*number=*/1);
  Recording recording = recorded_.Open();
  EXPECT_THAT(Chains(recording), ElementsAre(ElementsAre(0x1000, 0x1100),
                                             ElementsAre(0x1001, AddressOf(ChainEnd::kNoStack))))
      << "the stacks of the first block are of other samples";
  EXPECT_EQ(counts_.damaged_blocks, 1U);
}

// A vCPU that dom0 stopped: one sample a chunk, with the callers that frame pointers gave.
class StoppedSamples : public UnwoundSamples {
 protected:
  void AddStopped(uint64_t when, Mode mode, const std::vector<uint64_t>& words) {
    recording::UserStack stack;
    stack.registers[kRip] = kAddress;
    stack.registers[kRsp] = 0xffffc90000001000;
    stack.bytes = std::as_bytes(std::span(words));
    recording::TimedEntry entry;
    entry.address = kAddress;
    entry.mode = static_cast<uint8_t>(mode);
    (mode == Mode::kKernel ? entry.kernel_callers : entry.user_callers) = 1;
    entry.begin = when;
    entry.end = when + 1;
    recording::TimedChunk chunk;
    if (mode == Mode::kKernel) {
      chunk.Add(entry, words.empty() ? StackEntry() : block_.Add(stack), {&kByFramePointer, 1});
    } else {
      chunk.Add(entry, {&kByFramePointer, 1});
    }
    recorded_.Stopped(chunk, block_);
    block_.Clear();
  }
  // Makes the file of a kernel with ORC: a function at kAddress that pushes nothing, and behind it
  // where threads begin.
  static bool WriteKernel(const std::string& path) {
    const std::string source = path + ".S";
    std::ofstream(source) << R"(
      .globl _stext, called, thread
      .text
      _stext:
      called: .fill 0x10, 1, 0x90
      thread: .fill 0x30, 1, 0x90
      .section .orc_unwind_ip, "a"
      .long called - ., called + 8 - ., thread - ., thread + 0x30 - .
      .section .orc_unwind, "a"
      .short 8, 0, 0x205   # sp + 8, a call, as most entries of a kernel
      .short 8, 0, 0x205
      .short 0, 0, 0x100   # the end of the stack
      .short 0, 0, 0x000
    )";
    const int status = std::system(
        fmt::format(
            "gcc -c {0} -o {1}.o && ld -Ttext={2:#x} -e _stext -o {1} {1}.o && rm {0} {1}.o",
            source, path, kAddress)
            .c_str());
    return status == 0;
  }

  // Returns symbols of these files.
  static std::unique_ptr<symbolizer::DomainSymbols> Load(
      std::vector<symbolizer::SymbolSource> files) {
    symbolizer::SymbolSources sources;
    sources.sources = std::move(files);
    auto loaded = symbolizer::LoadSymbols(sources);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return std::move(loaded->resolver);
  }

  static constexpr Address kAddress = 0xffffffff81000000;
  static constexpr Address kByFramePointer = 0xffffffff81009999;
};

TEST_F(StoppedSamples, KeepTheirCallersWithoutOrc) {
  AddStopped(10, Mode::kKernel, {1, 2, 3});
  AddStopped(11, Mode::kUser, {});
  Recording recording = recorded_.Open();
  EXPECT_THAT(Chains(recording), ElementsAre(ElementsAre(kAddress, kByFramePointer),
                                             ElementsAre(kAddress, kByFramePointer)));
  ASSERT_THAT(kernels_, testing::SizeIs(1));
  EXPECT_EQ(kernels_[kD1].by_frame_pointers, 1U);
  EXPECT_EQ(kernels_[kD1].by_orc.Chains(), 0U);
  EXPECT_THAT(kernels_[kD1].why_no_orc, testing::HasSubstr("vmlinux was not given"));
}

TEST_F(StoppedSamples, HaveTheCallersThatOrcSays) {
  const std::string kernel = testing::TempDir() + "/vmlinux." + std::to_string(getpid());
  ASSERT_TRUE(WriteKernel(kernel));
  AddStopped(10, Mode::kKernel, {kAddress + 0x20});
  AddStopped(11, Mode::kKernel, {});
  AddStopped(12, Mode::kKernel, {0x1234});
  AddStopped(13, Mode::kUser, {});
  Recording recording = recorded_.Open();
  symbols_ = Load({{kD1, symbolizer::SourceKind::kKernel, kernel}});
  EXPECT_THAT(Chains(recording), ElementsAre(ElementsAre(kAddress, kAddress + 0x20),
                                             ElementsAre(kAddress, AddressOf(ChainEnd::kNoStack)),
                                             ElementsAre(kAddress, AddressOf(ChainEnd::kBadRule)),
                                             ElementsAre(kAddress, kByFramePointer)));
  EXPECT_EQ(kernels_[kD1].by_orc.Chains(), 3U);
  EXPECT_EQ(kernels_[kD1].by_orc.of(ChainEnd::kOutermost), 1U);
  EXPECT_EQ(kernels_[kD1].why_no_orc, "");
  EXPECT_EQ(counts_.Chains(), 0U);
  EXPECT_EQ(counts_.damaged_blocks, 0U);
  unlink(kernel.c_str());
}

// A module's function that a function of the kernel called.
TEST_F(StoppedSamples, HaveTheCallersThatAModulesOrcSays) {
  const std::string kernel = testing::TempDir() + "/vmlinux." + std::to_string(getpid());
  const std::string module = kernel + ".ko";
  const std::string names = kernel + ".kallsyms";
  constexpr Address kModule = 0xffffffffc0201000;
  ASSERT_TRUE(WriteKernel(kernel));
  std::ofstream(names) << fmt::format(
      "{:x} T _stext\n{:x} t submit\t[demo]\n{:x} t transfer\t[demo]\n", kAddress, kModule,
      kModule + 0x10);
  std::ofstream(module + ".S") << R"(
      .section .modinfo, "a"
      .asciz "name=demo"
      .text
      submit: .fill 0x10, 1, 0x90
      transfer: .fill 0x10, 1, 0x90
      .section .orc_unwind_ip, "a"
      .long .text - ., .text + 0x20 - .
      .section .orc_unwind, "a"
      .short 16, 0, 0x205
      .short 0, 0, 0x000
  )";
  ASSERT_EQ(std::system(fmt::format("gcc -c {0}.S -o {0} && rm {0}.S", module).c_str()), 0);
  AddStopped(10, Mode::kKernel, {kModule + 8, 0, kAddress + 0x20});
  Recording recording = recorded_.Open();
  const std::vector<symbolizer::SymbolSource> without = {
      {kD1, symbolizer::SourceKind::kKernel, names},
      {kD1, symbolizer::SourceKind::kKernel, kernel}};
  symbols_ = Load(without);
  EXPECT_THAT(Chains(recording),
              ElementsAre(ElementsAre(kAddress, kModule + 8, AddressOf(ChainEnd::kNoTable))));
  EXPECT_THAT(kernels_[kD1].modules_without_orc, ElementsAre(testing::HasSubstr("demo: ")));
  std::vector<symbolizer::SymbolSource> with = without;
  with.push_back({kD1, symbolizer::SourceKind::kModuleFile, module});
  Recording again = recorded_.Open();
  symbols_ = Load(with);
  EXPECT_THAT(Chains(again), ElementsAre(ElementsAre(kAddress, kModule + 8, kAddress + 0x20)));
  EXPECT_THAT(kernels_[kD1].modules_without_orc, testing::IsEmpty());
  for (const std::string& file : {kernel, module, names}) unlink(file.c_str());
}

// A vCPU of which the stack from which its stack was entered, and that of user mode, are known.
class StoppedInInterrupt : public StoppedSamples {
 protected:
  void SetUp() override {
    ASSERT_EQ(Assemble(kernel_, kAddress, R"(
      .globl _stext, handler, entry
      .text
      _stext:
      handler: .fill 0x10, 1, 0x90
      entry: .fill 0x10, 1, 0x90
      others: .fill 0x20, 1, 0x90
      .section .orc_unwind_ip, "a"
      .long handler - ., entry - ., others - ., others + 8 - ., others + 16 - ., others + 32 - .
      .section .orc_unwind, "a"
      .short 8, 0, 0x209   # the stack pointer of the interrupted code is on the stack
      .short 0, 0, 0x305   # registers of user mode are on the stack
      .short 8, 0, 0x205   # calls, as most entries of a kernel
      .short 8, 0, 0x205
      .short 8, 0, 0x205
      .short 0, 0, 0x000
    )"),
              0);
    ASSERT_EQ(Assemble(program_, kProgram, R"(
      .globl _start, leaf
      .text
      _start: .cfi_startproc
      .cfi_undefined rip
      .fill 0x10, 1, 0x90
      .cfi_endproc
      leaf: .cfi_startproc
      .fill 0x10, 1, 0x90
      .cfi_endproc
    )"),
              0);
  }
  void TearDown() override {
    unlink(kernel_.c_str());
    unlink(program_.c_str());
  }
  // Makes a file of this source whose code begins at `address`. Returns 0 if it can.
  static int Assemble(const std::string& path, Address address, const std::string& source) {
    std::ofstream(path + ".S") << source;
    return std::system(fmt::format("gcc -c {0}.S -o {0}.o && "
                                   "ld -Ttext={1:#x} -e 0 --build-id=0x01020304 -o {0} {0}.o "
                                   "2>{0}.log && "
                                   "rm {0}.S {0}.o {0}.log",
                                   path, address)
                           .c_str());
  }
  // The registers with which user mode entered the kernel, as that keeps them (struct pt_regs).
  static std::vector<uint64_t> UserRegistersOnStack(Address program) {
    std::vector<uint64_t> words(21);
    words[16] = program + 0x15;  // rip, in leaf
    words[19] = kUserStack;
    return words;
  }
  // Adds a sample in `handler`, with a stack of one word and these outer ones.
  void AddInterrupted(const std::vector<std::pair<Address, std::vector<uint64_t>>>& outer) {
    const uint64_t link = kTaskStack;
    recording::UserStack stack;
    stack.registers[kRip] = kAddress;
    stack.registers[kRsp] = 0xffffc90000001ff8;
    stack.bytes = std::as_bytes(std::span(&link, 1));
    recording::TimedEntry entry;
    entry.address = kAddress;
    entry.mode = static_cast<uint8_t>(Mode::kKernel);
    entry.begin = 10;
    entry.end = 11;
    entry.space = space_;
    const StackEntry innermost = block_.Add(stack);
    std::vector<recording::OuterStackEntry> entries;
    entries.reserve(outer.size());
    for (const auto& [address, words] : outer) {
      entries.push_back(block_.AddOuter(address, std::as_bytes(std::span(words))));
    }
    if (damaged_) entries[0].at = ~uint32_t{0};
    recording::TimedChunk chunk;
    chunk.Add(entry, innermost, {}, entries);
    recorded_.Stopped(chunk, block_, domain_);
    block_.Clear();
  }
  static std::vector<uint64_t> TaskStack(Address program = kProgram) {
    std::vector<uint64_t> words = UserRegistersOnStack(program);
    words.insert(words.begin(), kAddress + 0x18);  // where `handler` returns to, in `entry`
    return words;
  }

  static constexpr Address kTaskStack = 0xffffc90000000e00;  // below that of the handler
  static constexpr Address kUserStack = 0x7ffc00001000;
  static constexpr Address kProgram = 0x401000;
  const std::string kernel_ =
      testing::TempDir() + "/interrupted_kernel." + std::to_string(getpid());
  const std::string program_ = testing::TempDir() + "/program." + std::to_string(getpid());
  bool damaged_ = false;
  uint16_t space_ = 0;
  DomainId domain_ = kD1;
};

TEST_F(StoppedInInterrupt, SayWhereAProgramHasNoStack) {
  for (const Address address : {kProgram, kProgram + 0x10000}) {  // the second is of no known file
    recording::TimedEntry entry;
    entry.address = address;
    entry.mode = static_cast<uint8_t>(Mode::kUser);
    entry.begin = 10;
    entry.end = 11;
    recording::TimedChunk chunk;
    chunk.Add(entry, StackEntry(), {});
    recorded_.Stopped(chunk, block_);
  }
  Recording recording = recorded_.Open();
  symbols_ = Load({{kD1, symbolizer::SourceKind::kImage, program_}});
  EXPECT_THAT(Chains(recording), ElementsAre(ElementsAre(kProgram, AddressOf(ChainEnd::kNoStack)),
                                             ElementsAre(kProgram + 0x10000)));
  EXPECT_EQ(guest_programs_.of(ChainEnd::kNoStack), 1U);
}

TEST_F(StoppedInInterrupt, HaveTheCallersInTheFilesOfTheirAddressSpace) {
  constexpr Address kMoved = 0x555555555000;
  recorded_.SpaceMap(1, kMoved, 0x1000, {1, 2, 3, 4});
  recorded_.SpaceMap(2, kProgram, 0x1000, {1, 2, 3, 5});
  space_ = 1;
  AddInterrupted({{kTaskStack, TaskStack(kMoved)}, {kUserStack, {kMoved + 8}}});
  space_ = 2;
  AddInterrupted({{kTaskStack, TaskStack()}, {kUserStack, {kProgram + 8}}});
  space_ = 3;
  AddInterrupted({{kTaskStack, TaskStack()}, {kUserStack, {kProgram + 8}}});
  Recording recording = recorded_.Open();
  symbols_ = Load({{kD1, symbolizer::SourceKind::kKernel, kernel_},
                   {kD1, symbolizer::SourceKind::kImage, program_}});
  RecordedProcesses::Read(recording)->ExportTo(symbols_->processes());
  EXPECT_THAT(Chains(recording),
              ElementsAre(ElementsAre(kAddress, kAddress + 0x18, kMoved + 0x16, kMoved + 8),
                          ElementsAre(kAddress, kAddress + 0x18),
                          ElementsAre(kAddress, kAddress + 0x18, kProgram + 0x16, kProgram + 8)))
      << "the second is of another program at the addresses of the first, the third is not known";
  EXPECT_EQ(guest_programs_.Chains(), 2U);
}

TEST_F(StoppedInInterrupt, HaveTheCallersOfAllStacks) {
  AddInterrupted({{kTaskStack, TaskStack()}, {kUserStack, {kProgram + 8}}});
  Recording recording = recorded_.Open();
  symbols_ = Load({{kD1, symbolizer::SourceKind::kKernel, kernel_},
                   {kD1, symbolizer::SourceKind::kImage, program_}});
  EXPECT_THAT(Chains(recording),
              ElementsAre(ElementsAre(kAddress, kAddress + 0x18, kProgram + 0x16, kProgram + 8)));
  EXPECT_EQ(kernels_[kD1].by_orc.of(ChainEnd::kOutermost), 1U);
  EXPECT_EQ(guest_programs_.of(ChainEnd::kOutermost), 1U);
  EXPECT_EQ(guest_programs_.Chains(), 1U);
}

// Threads look up in kernels and programs of all guests at once; each guest that is met adds to
// what they look up in. Where it is not guarded, -fsanitize=thread says so.
TEST_F(StoppedInInterrupt, OfManyGuestsAreUnwoundAtOnce) {
  constexpr uint16_t kGuests = 300;
  for (uint16_t guest = 1; guest <= kGuests; ++guest) {
    domain_ = DomainId{guest};
    AddInterrupted({{kTaskStack, TaskStack()}, {kUserStack, {kProgram + 8}}});
  }
  Recording recording = recorded_.Open();
  symbols_ = Load({{symbolizer::kEveryDomain, symbolizer::SourceKind::kKernel, kernel_},
                   {symbolizer::kEveryDomain, symbolizer::SourceKind::kImage, program_}});
  const auto chains = Chains(recording);
  EXPECT_THAT(chains, testing::SizeIs(kGuests));
  EXPECT_THAT(chains,
              testing::Each(ElementsAre(kAddress, kAddress + 0x18, kProgram + 0x16, kProgram + 8)));
  EXPECT_THAT(kernels_, testing::SizeIs(kGuests));
}

TEST_F(StoppedInInterrupt, EndAtUserModeWithoutTheProgramsFile) {
  AddInterrupted({{kTaskStack, TaskStack()}, {kUserStack, {kProgram + 8}}});
  Recording recording = recorded_.Open();
  symbols_ = Load({{kD1, symbolizer::SourceKind::kKernel, kernel_}});
  EXPECT_THAT(Chains(recording), ElementsAre(ElementsAre(kAddress, kAddress + 0x18)));
  EXPECT_EQ(kernels_[kD1].by_orc.of(ChainEnd::kOutermost), 1U);
  EXPECT_EQ(guest_programs_.Chains(), 0U);
}

TEST_F(StoppedInInterrupt, SayWhereAStackIsMissing) {
  AddInterrupted({{kTaskStack, TaskStack()}});  // none of user mode
  AddInterrupted({});
  damaged_ = true;
  AddInterrupted({{kTaskStack, TaskStack()}, {kUserStack, {kProgram + 8}}});
  Recording recording = recorded_.Open();
  symbols_ = Load({{kD1, symbolizer::SourceKind::kKernel, kernel_},
                   {kD1, symbolizer::SourceKind::kImage, program_}});
  EXPECT_THAT(Chains(recording), ElementsAre(ElementsAre(kAddress, kAddress + 0x18, kProgram + 0x16,
                                                         AddressOf(ChainEnd::kStackCut)),
                                             ElementsAre(kAddress, AddressOf(ChainEnd::kBadRule)),
                                             ElementsAre(kAddress, AddressOf(ChainEnd::kBadRule))));
}

}  // namespace
}  // namespace xenoscope::profile
