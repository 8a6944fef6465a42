// Modules of kernels: which file is used for a loaded one, where its sections are, and how its code
// is left.
#include "symbolizer/kernel_modules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "made_module.h"
#include "symbolizer/elf/module_file.h"
#include "symbolizer/load.h"

namespace xenoscope::symbolizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

namespace fs = std::filesystem;

constexpr Address kText = 0xffffffffc0201000;  // of the loaded module
constexpr Address kUnlikely = 0xffffffffc0203000;
constexpr const char* kRelease = "6.12.1-demo";

ModuleKernel WithoutRelease() { return {.release = "", .layout = OrcLayout::kFiveTypes}; }

KernelModules::Finders FindersBelow(const fs::path& root) {
  return {FileFinder(root.string()), FileFinder()};
}

// A directory of the test's own.
class KernelModulesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "modules.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    if (!AssembleModule(root_ / "made.ko", SourceOfModule("demo_module"))) {
      GTEST_SKIP() << "no assembler here";
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::shared_ptr<const ModuleFile> Open(const fs::path& path) {
    auto file = ModuleFile::Open(FileContent::Open(path.string()).value(), path.string());
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? std::shared_ptr<const ModuleFile>(*std::move(file)) : nullptr;
  }
  static std::vector<LoadedFunction> Functions() {
    return {
        {"submit", kText + kSubmit}, {"transfer", kText + kTransfer}, {"fail", kUnlikely + kFail}};
  }
  // Puts the file, compressed by this command, among the modules of a machine whose disk is root_.
  void Install(const std::string& path, const std::string& compress = "cat") const {
    const fs::path to = root_ / "lib/modules" / kRelease / path;
    fs::create_directories(to.parent_path());
    ASSERT_EQ(
        std::system(
            fmt::format("{} <{} >{}", compress, (root_ / "made.ko").string(), to.string()).c_str()),
        0);
  }
  // Looks for the file of the loaded module below root_. Returns why there is none.
  std::vector<std::string> Place(std::vector<LoadedFunction> functions = Functions()) {
    modules_.Place(kDomain, "demo_module", functions,
                   {.release = kRelease, .layout = OrcLayout::kFiveTypes}, FindersBelow(root_));
    return modules_.Missing(kDomain);
  }

  static constexpr DomainId kDomain{3};
  fs::path root_;
  KernelModules modules_;
};

TEST_F(KernelModulesTest, AreNamedAsLinuxNamesThem) {
  EXPECT_EQ(ModuleFile::NameOfPath("/lib/modules/6.1/kernel/xen-blkfront.ko.xz"), "xen_blkfront");
  EXPECT_EQ(ModuleFile::NameOfPath("brd.ko"), "brd");
  EXPECT_EQ(ModuleFile::NameOfPath("brd.ko.debug"), "");
  EXPECT_EQ(ModuleFile::NameOfPath("modules.dep"), "");
  EXPECT_EQ(ModuleFile::NameOfPath("a b.ko"), "");
  EXPECT_EQ(Open(root_ / "made.ko")->name(), "demo_module") << "as the file says";
}

TEST_F(KernelModulesTest, AreWhereAllTheirFunctionsSay) {
  const auto file = Open(root_ / "made.ko");
  const auto places = file->PlacesOf(Functions());
  ASSERT_TRUE(places.ok()) << places.status();
  ASSERT_THAT(*places, SizeIs(2));
  EXPECT_EQ((*places)[0].begin, kText);
  EXPECT_EQ((*places)[0].end, kText + 0x80);
  EXPECT_EQ((*places)[1].begin, kUnlikely);
  EXPECT_EQ((*places)[1].end, kUnlikely + 0x20);
  const struct {
    std::vector<LoadedFunction> functions;
    const char* why;
  } refused[] = {
      {{{"submit", kText}, {"transfer", kText + 0x50}}, "transfer is at another place"},
      {{{"submit", kText}, {"transfer", kText + 0x40}, {"renamed", kText + 0x60}},
       "the loaded module has renamed"},
      {{{"submit", kText}}, "1 of its functions"},  // the file has others
      {{}, "0 of its functions"},
      {{{"submit", kText}, {"transfer", kText + 0x40}, {"fail", kUnlikely + kFail + 4}},
       "fail is at another place"},  // its section is aligned to 16 bytes
      {{{"submit", kText}, {"transfer", kText + 0x40}, {"fail", kText + 0x50}}, "would overlap"},
      {{{"submit", ~Address{0} - 0xf}, {"transfer", 0x30}}, "would overlap"},  // wraps around
  };
  for (const auto& c : refused) {
    const auto refusal = file->PlacesOf(c.functions);
    ASSERT_FALSE(refusal.ok()) << c.why;
    EXPECT_THAT(std::string(refusal.status().message()), HasSubstr(c.why));
  }
}

// Of a module with one function nothing more can be in kallsyms.
TEST_F(KernelModulesTest, MayHaveOneFunction) {
  const char* const source = R"(
      .section .modinfo, "a"
      .asciz "name=demo_module"
      .text
      .fill 0x10, 1, 0x90
      .type only, @function
      only: .fill 0x20, 1, 0x90
      label: .fill 0x10, 1, 0x90
      .section .init.text, "ax"
      .type start, @function
      start: .fill 0x10, 1, 0x90
    )";
  ASSERT_TRUE(AssembleModule(root_ / "one.ko", source));
  const auto file = Open(root_ / "one.ko");
  const std::vector<LoadedFunction> functions = {{"only", kText + 0x10}};
  const auto places = file->PlacesOf(functions);
  ASSERT_TRUE(places.ok()) << places.status();
  ASSERT_THAT(*places, SizeIs(1));
  EXPECT_EQ(places->front().begin, kText);
  EXPECT_EQ(places->front().end, kText + 0x40);
  EXPECT_FALSE(file->PlacesOf(std::vector<LoadedFunction>{{"other", kText + 0x10}}).ok());
}

TEST_F(KernelModulesTest, HaveEntriesOfOrcAtTheirPlacesInTheFile) {
  const auto file = Open(root_ / "made.ko");
  const auto places = file->PlacesOf(Functions());
  const auto begins = file->OrcBegins();
  ASSERT_TRUE(places.ok() && begins.has_value());
  const Address text = (*places)[0].address;
  const Address unlikely = (*places)[1].address;
  ASSERT_THAT(*begins, SizeIs(7));
  // The last one is of .init.text, which is not there any more.
  EXPECT_THAT(
      std::vector<Address>(begins->begin(), begins->end() - 1),
      ElementsAre(text, text + 0x40, text + 0x60, text + 0x80, unlikely + 0x10, unlikely + 0x20));
}

// What objtool would not write.
TEST_F(KernelModulesTest, HaveNoOrcWhereThatIsDamaged) {
  const char* const damages[] = {
      // an entry without a relocation, or with two
      R"(.section .orc_unwind_ip, "a"
         .long 0
         .section .orc_unwind, "a"
         .short 8, 0, 0x205)",
      R"(.section .orc_unwind_ip, "a"
         .reloc 0, R_X86_64_PC32, .text)",
      // beyond the section, in no code, of another kind
      R"(.section .orc_unwind_ip, "a"
         .long .text + 0x1000 - .
         .section .orc_unwind, "a"
         .short 8, 0, 0x205)",
      R"(.section .orc_unwind_ip, "a"
         .long .modinfo - .
         .section .orc_unwind, "a"
         .short 8, 0, 0x205)",
      R"(.section .orc_unwind_ip, "a"
         .long undefined - .
         .section .orc_unwind, "a"
         .short 8, 0, 0x205)",
      R"(.section .orc_unwind_ip, "a"
         .long .text
         .section .orc_unwind, "a"
         .short 8, 0, 0x205)",
  };
  for (const char* const damage : damages) {
    SCOPED_TRACE(damage);
    ASSERT_TRUE(AssembleModule(root_ / "damaged.ko", SourceOfModule("demo_module", damage)));
    const auto file = Open(root_ / "damaged.ko");
    EXPECT_FALSE(file->OrcBegins().has_value());
    KernelModules modules;
    modules.AddFile(kDomain, file);
    modules.Place(kDomain, "demo_module", Functions(), WithoutRelease(), FindersBelow(root_));
    EXPECT_THAT(modules.Missing(kDomain), ElementsAre(HasSubstr("no ORC, or a damaged one")));
    EXPECT_FALSE(modules.CodeAt(kDomain, kText).has_value());
  }
}

TEST_F(KernelModulesTest, AreOpenedOnlyIfTheyAreModules) {
  std::ofstream(root_ / "text.ko") << "no module";
  ASSERT_TRUE(AssembleModule(root_ / "unnamed", ".text\nnop\nonly: nop\n"));
  fs::copy(root_ / "made.ko", root_ / "stripped.ko");
  ASSERT_EQ(std::system(fmt::format("strip {}", (root_ / "stripped.ko").string()).c_str()), 0);
  const struct {
    std::string path;
    const char* why;
  } cases[] = {
      {(root_ / "text.ko").string(), "not an ELF file"},
      {(root_ / "unnamed").string(), "does not say of which module it is"},
      {(root_ / "stripped.ko").string(), "it was stripped, or cut off"},
      {"/proc/self/exe", "not a kernel's module"},
  };
  for (const auto& c : cases) {
    const auto file = ModuleFile::Open(FileContent::Open(c.path).value(), c.path);
    ASSERT_FALSE(file.ok()) << c.path;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(c.why));
  }
}

TEST_F(KernelModulesTest, AreFoundOnTheDiskOfTheirMachine) {
  EXPECT_THAT(Place(), ElementsAre(AllOf(HasSubstr("demo_module: its file was not given"),
                                         HasSubstr("/lib/modules/6.12.1-demo"))));
  for (const auto& [name, compress] :
       {std::pair("demo-module.ko", "cat"), std::pair("demo-module.ko.xz", "xz --check=crc32"),
        std::pair("demo-module.ko.zst", "zstd -q"), std::pair("demo-module.ko.gz", "gzip")}) {
    SCOPED_TRACE(name);
    Install(std::string("kernel/drivers/") + name, compress);
    modules_ = {};
    EXPECT_THAT(Place(), IsEmpty());
    EXPECT_TRUE(modules_.CodeAt(kDomain, kText).has_value());
    fs::remove_all(root_ / "lib");
  }
}

TEST_F(KernelModulesTest, AreTakenFromUsrLibIfLibIsNotThere) {
  Install("demo-module.ko");
  fs::create_directories(root_ / "usr");
  fs::rename(root_ / "lib", root_ / "usr/lib");
  EXPECT_THAT(Place(), IsEmpty());
}

// updates/ replaces what is in kernel/; which of them was loaded, the functions say.
TEST_F(KernelModulesTest, AreTheOnesThatFit) {
  Install("updates/demo-module.ko");
  std::string other = SourceOfModule("demo_module");
  constexpr std::string_view kSizeOfSubmit = ".fill 0x40";
  other.replace(other.find(kSizeOfSubmit), kSizeOfSubmit.size(), ".fill 0x44");
  ASSERT_TRUE(AssembleModule(root_ / "made.ko", other));
  Install("kernel/demo-module.ko");
  EXPECT_THAT(Place(), IsEmpty());
  ASSERT_THAT(modules_.UsedFiles(), SizeIs(1));
  EXPECT_THAT(modules_.UsedFiles()[0].file->path(), HasSubstr("updates/"));
  modules_ = {};
  EXPECT_THAT(Place({{"submit", kText}, {"transfer", kText + 0x48}}),
              ElementsAre(HasSubstr("of another build")));
}

// The disk may be a guest's.
TEST_F(KernelModulesTest, AreNotFoundThroughLinksThatLeadOut) {
  const fs::path outside = root_ / "outside";
  fs::create_directories(outside);
  fs::copy(root_ / "made.ko", outside / "demo-module.ko");
  const fs::path guest = root_ / "guest";
  fs::create_directories(guest / "lib/modules" / kRelease);
  fs::create_directory_symlink(outside, guest / "lib/modules" / kRelease / "kernel");
  fs::create_symlink(outside / "demo-module.ko",
                     guest / "lib/modules" / kRelease / "demo-module.ko");
  const auto place = [&] {
    KernelModules modules;
    modules.Place(kDomain, "demo_module", Functions(),
                  {.release = kRelease, .layout = OrcLayout::kFiveTypes}, FindersBelow(guest));
    return modules.Missing(kDomain);
  };
  EXPECT_THAT(place(), SizeIs(1));
  fs::remove_all(guest / "lib/modules" / kRelease);
  fs::create_directory_symlink(outside, guest / "lib/modules" / kRelease);
  EXPECT_THAT(place(), SizeIs(1));
}

TEST_F(KernelModulesTest, OfADomainDoNotOverlap) {
  Install("demo-module.ko");
  EXPECT_THAT(Place(), IsEmpty());
  ASSERT_TRUE(AssembleModule(root_ / "other.ko", SourceOfModule("other")));
  modules_.AddFile(kDomain, Open(root_ / "other.ko"));
  std::vector<LoadedFunction> functions = Functions();
  for (LoadedFunction& function : functions) function.address += 0x10;
  modules_.Place(kDomain, "other", functions, WithoutRelease(), FindersBelow(root_));
  EXPECT_THAT(modules_.Missing(kDomain), ElementsAre(HasSubstr("another module")));
  modules_.AddFile(DomainId{4}, Open(root_ / "other.ko"));
  modules_.Place(DomainId{4}, "other", functions, WithoutRelease(), FindersBelow(root_));
  EXPECT_THAT(modules_.Missing(DomainId{4}), IsEmpty()) << "another domain's memory";
}

// A kernel with one function, and its module, as a report gets them.
class KernelWithModule : public KernelModulesTest {
 protected:
  void SetUp() override {
    KernelModulesTest::SetUp();
    if (IsSkipped()) return;
    std::ofstream(root_ / "vmlinux.S") << fmt::format(R"(
      .globl _stext
      .text
      _stext: .fill 0x20, 1, 0x90
      .section .rodata, "a"
      .asciz "Linux version {} (maker) #1"
      .section .orc_unwind_ip, "a"
      .long _stext - ., _stext + 8 - ., _stext + 0x20 - .
      .section .orc_unwind, "a"
      .short 8, 0, 0x205
      .short 8, 0, 0x205
      .short 0, 0, 0x000
    )",
                                                      kRelease);
    ASSERT_EQ(std::system(fmt::format("cd {} && gcc -c vmlinux.S && "
                                      "ld -Ttext={:#x} -e _stext -o vmlinux vmlinux.o",
                                      root_.string(), kKernel)
                              .c_str()),
              0);
    std::ofstream(root_ / "kallsyms") << fmt::format(
        "{:x} T _stext\n{:x} t submit\t[demo_module]\n{:x} t transfer\t[demo_module]\n"
        "{:x} t fail\t[demo_module]\n{:x} t bpf_prog_1_x\t[bpf]\n",
        kKernel, kText, kText + kTransfer, kUnlikely + kFail, kText + 0x10000);
  }
  std::unique_ptr<DomainSymbols> Load(std::vector<SymbolSource> more, bool with_root) const {
    SymbolSources sources;
    sources.sources = {{kDomain, SourceKind::kKernel, (root_ / "kallsyms").string()},
                       {kDomain, SourceKind::kKernel, (root_ / "vmlinux").string()}};
    sources.sources.insert(sources.sources.begin(), more.begin(), more.end());
    if (with_root) sources.roots = {{kDomain, root_.string()}};
    auto loaded = LoadSymbols(sources);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? std::move(loaded->resolver) : nullptr;
  }
  static constexpr Address kKernel = 0xffffffff81000000;
};

TEST_F(KernelWithModule, IsUnwoundThroughTheModule) {
  Install("kernel/demo-module.ko");
  for (const bool given : {false, true}) {
    SCOPED_TRACE(given);
    const auto symbols =
        given ? Load({{kDomain, SourceKind::kModuleFile, (root_ / "made.ko").string()}}, false)
              : Load({}, true);
    const UnwindCode code = symbols->KernelCodeAt(kDomain, kText + kTransfer);
    ASSERT_NE(code.table, nullptr);
    EXPECT_TRUE(code.mapped);
    EXPECT_EQ(code.table->RowAt(code.table->Find(code.address)).cfa_value, 16);
    const UnwindCode fail = symbols->KernelCodeAt(kDomain, kUnlikely + kFail);
    EXPECT_EQ(code.table->RowAt(fail.table->Find(fail.address)).cfa_value, 8);
    EXPECT_FALSE(symbols->KernelCodeAt(kDomain, kUnlikely).mapped) << "ORC knows no code there";
    EXPECT_TRUE(symbols->KernelCodeAt(kDomain, kUnlikely + 0x20).mapped) << "nothing is known";
    EXPECT_EQ(symbols->KernelCodeAt(kDomain, kUnlikely + 0x20).table, nullptr);
    EXPECT_TRUE(symbols->KernelCodeAt(kDomain, kText + 0x10004).frame_pointers) << "BPF";
    EXPECT_THAT(symbols->modules().Missing(kDomain), IsEmpty());
    // From the module's function, which has pushed a word, through `submit`, to the kernel.
    UserRegisters registers{};
    registers[kRip] = kText + kTransfer + 4;
    registers[kRsp] = 0xffffc90000001000;
    const std::vector<uint64_t> words = {1, kText + kSubmit + 8, kKernel + 0x18, 0x1234};
    struct Source final : UnwindCodeSource {
      explicit Source(DomainSymbols& symbols) : of(symbols) {}
      UnwindCode CodeAt(AddressSpaceId /*space*/, Address address) override {
        return of.KernelCodeAt(kDomain, address);
      }
      DomainSymbols& of;
    } source(*symbols);
    std::vector<Address> callers;
    Unwinder(source).Unwind({1}, registers, {registers[kRsp], std::as_bytes(std::span(words))},
                            callers);
    EXPECT_THAT(callers, ElementsAre(kText + kSubmit + 8, kKernel + 0x18));
  }
}

TEST_F(KernelWithModule, SaysWhichModulesHaveNoFile) {
  const auto symbols = Load({}, true);
  const UnwindCode code = symbols->KernelCodeAt(kDomain, kText);
  EXPECT_TRUE(code.mapped);
  EXPECT_EQ(code.table, nullptr);
  EXPECT_FALSE(code.frame_pointers);
  EXPECT_THAT(symbols->modules().Missing(kDomain), ElementsAre(HasSubstr("demo_module: ")));
}

TEST_F(KernelWithModule, RefusesAFileThatIsNoModule) {
  SymbolSources sources;
  sources.sources = {{.domain = kDomain,
                      .kind = SourceKind::kModuleFile,
                      .path = (root_ / "vmlinux").string(),
                      .required = true}};
  const auto loaded = LoadSymbols(sources);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("not a kernel's module"));
}

}  // namespace
}  // namespace xenoscope::symbolizer
