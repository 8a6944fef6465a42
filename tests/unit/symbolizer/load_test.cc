// From a recording's directory to a resolver: which files are found, and what damaged ones become.
#include "symbolizer/load.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace fs = std::filesystem;

// A directory of the test's own, removed after it.
class LoadTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "symbols.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, std::string_view text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  std::string Path(const std::string& name) const { return (root_ / name).string(); }
  LoadedSymbols LoadAll() const { return LoadSymbols(SourcesInRecording(root_.string())).value(); }

  fs::path root_;
};

std::string At(const LoadedSymbols& loaded, DomainId domain, Mode mode, Address address) {
  const Function& f = loaded.resolver->Describe(loaded.resolver->Resolve(domain, mode, address));
  return f.image + "!" + f.name + (f.unresolved.empty() ? "" : ": " + f.unresolved);
}

// "ffffffff81000000 T one\nffffffff81000100 D end\n" as zstd writes it, with its checksum.
constexpr unsigned char kCompressed[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0xfd, 0x00, 0x00, 0xa8, 0x66, 0x38, 0x31, 0x30, 0x20,
    0x54, 0x20, 0x6f, 0x6e, 0x65, 0x0a, 0x31, 0x30, 0x30, 0x20, 0x44, 0x20, 0x65, 0x6e, 0x64,
    0x0a, 0x03, 0x00, 0x3a, 0xcf, 0x80, 0x3b, 0x19, 0xb8, 0x02, 0xcb, 0xd9, 0x81, 0xff};

TEST_F(LoadTest, FindsSymbolsOfRecording) {
  Write("symbols/xensyms", "ffff82d040200000 T start\nffff82d040200100 D end\n");
  Write("symbols/dom0.kallsyms",
        "ffffffff81000000 T zero\nffffffff81000100 D end\nffffffffc0201000 t open\t[m]\n");
  Write("symbols/dom0.modules", "m 4096 0 - Live 0xffffffffc0201000\n");
  Write("guests/1/kallsyms", "ffffffff81000000 T one\nffffffff81000100 D end\n");
  Write("guests/2/System.map", "ffffffff81000000 T two\nffffffff81000100 D end\n");
  Write("guests/2/gw", "401000 0000000000000010 T main\n");
  Write("guests/2/images/list", "501000 spin\n");
  Write("guests/notes.txt", "no domain\n");
  const LoadedSymbols loaded = LoadAll();
  EXPECT_THAT(loaded.warnings, IsEmpty());
  EXPECT_EQ(At(loaded, kDom0, Mode::kXen, 0xffff82d040200001), "xen!start");
  EXPECT_EQ(At(loaded, kDom0, Mode::kKernel, 0xffffffff81000001), "vmlinux!zero");
  EXPECT_EQ(At(loaded, kDom0, Mode::kKernel, 0xffffffffc0201fff), "[m]!open");
  EXPECT_THAT(At(loaded, kDom0, Mode::kKernel, 0xffffffffc0202000), HasSubstr("[outside]"));
  EXPECT_EQ(At(loaded, {1}, Mode::kKernel, 0xffffffff81000001), "vmlinux!one");
  EXPECT_EQ(At(loaded, {2}, Mode::kKernel, 0xffffffff81000001), "vmlinux!two");
  EXPECT_EQ(At(loaded, {2}, Mode::kUser, 0x40100f), "gw!main");
  EXPECT_EQ(At(loaded, {2}, Mode::kUser, 0x501000), "list!spin");
}

TEST_F(LoadTest, LivepatchesAreSeparateImages) {
  const fs::path data = XENOSCOPE_TEST_DATA "/livepatch";
  constexpr Address kCode = 0xffff82d0405b0000;
  Write("symbols/xensyms", "ffff82d040326c30 T get_s_time\nffff82d040326c90 D end\n");
  fs::create_directories(root_ / "symbols/livepatches");
  fs::copy(data / "list", root_ / "symbols/livepatches");
  const LoadedSymbols listed = LoadAll();
  EXPECT_THAT(listed.warnings, IsEmpty());
  EXPECT_EQ(At(listed, kDom0, Mode::kXen, 0xffff82d040326c30), "xen!get_s_time");
  EXPECT_EQ(At(listed, {1}, Mode::kXen, kCode + 20), "[livepatch slow_time]!get_s_time");
  EXPECT_THAT(At(listed, {1}, Mode::kXen, kCode + 21),
              HasSubstr("[livepatch slow_time]![gap]: code of the livepatch"));
  EXPECT_THAT(At(listed, {1}, Mode::kXen, kCode + 0x1000), HasSubstr("[outside]"));

  fs::copy(data / "slow_time.livepatch", root_ / "symbols/livepatches");
  const LoadedSymbols named = LoadAll();
  EXPECT_THAT(named.warnings, IsEmpty());
  EXPECT_EQ(At(named, {1}, Mode::kXen, kCode + 20), "[livepatch slow_time]!get_s_time");
  EXPECT_EQ(At(named, {1}, Mode::kXen, kCode + 21), "[livepatch slow_time]!linger");
}

TEST_F(LoadTest, RefusesFileOfOtherLivepatch) {
  const fs::path data = XENOSCOPE_TEST_DATA "/livepatch";
  fs::create_directories(root_ / "symbols/livepatches");
  fs::copy(data / "slow_time.livepatch", root_ / "symbols/livepatches");
  LoadedSymbols loaded = LoadAll();
  ASSERT_THAT(loaded.warnings, SizeIs(1));
  EXPECT_THAT(loaded.warnings[0], HasSubstr("no livepatch with its build-id"));

  std::ifstream file(data / "list");
  std::string list(std::istreambuf_iterator<char>(file), {});
  const size_t place = list.find("with ffff82d0405b0000");
  ASSERT_NE(place, std::string::npos);
  list.replace(place, 21, "with ffff82d0405b0008");
  Write("symbols/livepatches/list", list);
  loaded = LoadAll();
  ASSERT_THAT(loaded.warnings, SizeIs(1));
  EXPECT_THAT(loaded.warnings[0], HasSubstr("its functions are not where Xen has those"));
  EXPECT_EQ(At(loaded, {1}, Mode::kXen, 0xffff82d0405b0008), "[livepatch slow_time]!get_s_time");
}

TEST_F(LoadTest, RecordingWithoutSymbolsGivesReasonForEachAddress) {
  const LoadedSymbols loaded = LoadAll();
  EXPECT_THAT(loaded.warnings, IsEmpty());
  EXPECT_EQ(At(loaded, kDom0, Mode::kXen, 1), "[unknown]![no symbols]: no symbols for Xen");
}

TEST_F(LoadTest, WarnsAboutUnusableFile) {
  Write("guests/1/kallsyms", "0000000000000000 T one\n0000000000000000 T two\n");
  const LoadedSymbols loaded = LoadAll();
  ASSERT_THAT(loaded.warnings, SizeIs(1));
  EXPECT_THAT(loaded.warnings[0], HasSubstr("guests/1/kallsyms: kptr_restrict hides"));
  EXPECT_THAT(At(loaded, {1}, Mode::kKernel, 0xffffffff81000001), HasSubstr("kptr_restrict"));
}

TEST_F(LoadTest, ReportsMalformedLines) {
  Write("guests/1/kallsyms", "ffffffff81000000 T one\nffffffff81000100 D end\nwhat\n");
  const LoadedSymbols loaded = LoadAll();
  ASSERT_THAT(loaded.warnings, SizeIs(1));
  EXPECT_THAT(loaded.warnings[0],
              HasSubstr("1 lines are damaged or no symbols, the first is number 3"));
}

TEST_F(LoadTest, UnusableFileOfUserIsAnError) {
  SymbolSources sources;
  sources.sources = {
      {.domain = {1}, .kind = SourceKind::kKernel, .path = Path("nowhere"), .required = true}};
  const auto loaded = LoadSymbols(sources);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(loaded.status())), HasSubstr(Path("nowhere")));
}

// The subject takes a kernel's place: its functions come from a text that is moved, its lines from
// the file.
// Returns the address of main() in the subject; 0 where it cannot be read.
Address MainOfSubject() {
  const auto content = FileContent::Open(XENOSCOPE_TEST_SUBJECT);
  if (!content.ok()) return 0;
  const auto elf = ElfFile::Open(content->bytes());
  if (!elf.ok()) return 0;
  const auto symbols = ReadElf(*elf, "subject");
  if (!symbols.ok()) return 0;
  for (const Symbol& symbol : symbols->table.functions) {
    if (symbol.name == "main") return symbol.address;
  }
  return 0;
}

TEST_F(LoadTest, ProgramThatIsGivenAndRecordedCountsOnce) {
  const Address main = MainOfSubject();
  ASSERT_NE(main, 0U);
  const SymbolSource program{
      .domain = {1}, .kind = SourceKind::kImage, .path = XENOSCOPE_TEST_SUBJECT};
  fs::copy_file(XENOSCOPE_TEST_SUBJECT, root_ / "recorded");
  SymbolSources sources;
  sources.sources = {program, program};
  sources.sources[1].path = Path("recorded");
  const auto loaded = LoadSymbols(sources);
  ASSERT_TRUE(loaded.ok());
  EXPECT_THAT(loaded->warnings, IsEmpty());
  EXPECT_THAT(At(*loaded, {1}, Mode::kUser, main), testing::EndsWith("!main"));
  EXPECT_NE(loaded->resolver->UserCodeAt({1}, {}, main).table, nullptr);
}

TEST_F(LoadTest, ChainsAreUnwoundThroughStrippedProgram) {
  Write("leaf.S", ".globl _start\n_start:\n.cfi_startproc\nnop\nret\n.cfi_endproc\n");
  if (std::system(
          fmt::format("gcc -c {0}.S -o {0}.o && ld -s -Ttext=0x400000 -o {0} {0}.o", Path("leaf"))
              .c_str()) != 0) {
    GTEST_SKIP() << "no assembler here";
  }
  SymbolSources sources;
  sources.sources = {
      {.domain = {1}, .kind = SourceKind::kImage, .path = Path("leaf"), .required = true}};
  const auto loaded = LoadSymbols(sources);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_THAT(loaded->warnings, SizeIs(1));
  EXPECT_THAT(loaded->warnings[0], HasSubstr("call chains are unwound through it"));
  EXPECT_NE(loaded->resolver->UserCodeAt({1}, {}, 0x400000).table, nullptr);
  EXPECT_THAT(At(*loaded, {1}, Mode::kUser, 0x400000), HasSubstr("stripped of its symbols"));
}

TEST_F(LoadTest, FindsLinesOfKernelMovedByKaslr) {
  const Address main = MainOfSubject();
  ASSERT_NE(main, 0U);
  // The subject has no _stext: what cannot be compared is not used, with a warning.
  constexpr Address kMoved = 0x1200'0000;
  Write("kallsyms", fmt::format("{:x} T main\n{:x} D end\n", main + kMoved, main + kMoved + 0x100));
  SymbolSources sources;
  sources.sources = {{{1}, SourceKind::kKernel, Path("kallsyms")},
                     {{1}, SourceKind::kKernel, XENOSCOPE_TEST_SUBJECT}};
  auto loaded = LoadSymbols(sources);
  ASSERT_TRUE(loaded.ok());
  ASSERT_THAT(loaded->warnings, SizeIs(1));
  EXPECT_THAT(loaded->warnings[0], HasSubstr("without _stext"));
  EXPECT_THAT(loaded->resolver->Inlined({1}, Mode::kKernel, main + kMoved), IsEmpty());

  // Now a list of its addresses says how it was moved.
  if (std::system(fmt::format("objcopy --add-symbol _stext=.text:0,function,global {} {}",
                              XENOSCOPE_TEST_SUBJECT, Path("vmlinux"))
                      .c_str()) != 0) {
    GTEST_SKIP() << "no objcopy here";
  }
  const auto copy = FileContent::Open(Path("vmlinux"));
  ASSERT_TRUE(copy.ok());
  const auto copied_elf = ElfFile::Open(copy->bytes());
  ASSERT_TRUE(copied_elf.ok());
  const auto copied = ReadElf(*copied_elf, "vmlinux");
  ASSERT_TRUE(copied.ok());
  ASSERT_TRUE(copied->table.stext.has_value());
  Write("kallsyms",
        fmt::format("{:x} T _stext\n{:x} T main\n{:x} D end\n", *copied->table.stext + kMoved,
                    main + kMoved, main + kMoved + 0x100));
  sources.sources[1].path = Path("vmlinux");
  loaded = LoadSymbols(sources);
  ASSERT_TRUE(loaded.ok());
  EXPECT_THAT(loaded->warnings, IsEmpty());
  const auto frames = loaded->resolver->Inlined({1}, Mode::kKernel, main + kMoved);
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames.back().function, "main");
  EXPECT_THAT(frames.back().call_site_or_line.file, HasSubstr("subject.cc"));

  // A map whose text has another length is of another build.
  Write("System.map",
        fmt::format("{0:x} T _stext\n{1:x} T main\n{1:x} T _etext\n", main, main + 64));
  Write("kallsyms",
        fmt::format("{0:x} T _stext\n{1:x} T main\n{2:x} T _etext\n", main, main + 64, main + 128));
  sources.sources[1].path = Path("System.map");
  loaded = LoadSymbols(sources);
  ASSERT_TRUE(loaded.ok());
  ASSERT_THAT(loaded->warnings, SizeIs(1));
  EXPECT_THAT(loaded->warnings[0], HasSubstr("another build"));
}

TEST_F(LoadTest, WarnsAboutOtherBuildId) {
  SymbolSources sources;
  sources.sources = {{.domain = {1},
                      .kind = SourceKind::kImage,
                      .path = XENOSCOPE_TEST_SUBJECT,
                      .build_id = "00ff"}};
  const auto loaded = LoadSymbols(sources);
  ASSERT_TRUE(loaded.ok());
  const auto content = FileContent::Open(XENOSCOPE_TEST_SUBJECT);
  const auto elf = ElfFile::Open(content->bytes());
  if (elf->BuildId().empty()) GTEST_SKIP() << "this compiler's files have no build-id";
  ASSERT_THAT(loaded->warnings, SizeIs(1));
  EXPECT_THAT(loaded->warnings[0], HasSubstr("but 00ff ran"));
}

TEST_F(LoadTest, ReadsCompressedFilesAndReportsDamagedOnes) {
  const std::string_view compressed(reinterpret_cast<const char*>(kCompressed), sizeof kCompressed);
  Write("guests/1/kallsyms.zst", compressed);
  Write("guests/2/kallsyms.zst", compressed.substr(0, 20));
  Write("guests/3/kallsyms.zst", "not zstd");
  const LoadedSymbols loaded = LoadAll();
  EXPECT_EQ(At(loaded, {1}, Mode::kKernel, 0xffffffff81000001), "vmlinux!one");
  ASSERT_THAT(loaded.warnings, SizeIs(2));
  EXPECT_THAT(loaded.warnings[0], HasSubstr("guests/2/kallsyms.zst: the zstd data ends too early"));
  EXPECT_THAT(loaded.warnings[1], HasSubstr("guests/3/kallsyms.zst: damaged zstd data"));
}

}  // namespace
}  // namespace xenoscope::symbolizer
