// Lines, inlined frames and code of functions in modules of kernels, by the DWARF of the module's
// file or of its debug file, which compilers and ld -r make.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "symbolizer/domain_symbols.h"
#include "symbolizer/elf/module_file.h"
#include "symbolizer/load.h"

namespace xenoscope::symbolizer {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

constexpr DomainId kGuest{3};
constexpr Address kModuleText = 0xffffffffc0201000;
constexpr Address kModuleCold = 0xffffffffc0305000;
constexpr const char* kGuestRelease = "6.12.1-lines";

// `submit`, in which `copy` is inlined, and `fail`, in a section of its own.
constexpr const char* kSource = R"(
static const char name[] __attribute__((section(".modinfo"), used)) = "name=demo_module";
static inline __attribute__((always_inline)) void copy(volatile long *to, volatile long *from) {
  *to = *from;  /* line 4 */
  *to += *from;
}
__attribute__((section(".text.unlikely"), noinline)) int fail(volatile long *at) {
  return *at;  /* line 8 */
}
static int ready;
__attribute__((noinline)) int first(void) { return ready; }
int submit(volatile long *to, volatile long *from) {
  copy(to, from);  /* line 13 */
  return fail(from);
}
)";

// A guest whose kernel has loaded the module, and its disk below root_.
class ModuleLinesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lines.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::ofstream(root_ / "demo.c") << kSource;
    fs::create_directories(installed().parent_path());
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path installed() const {
    return root_ / "lib/modules" / kGuestRelease / "kernel/demo-module.ko";
  }
  // Runs commands of a shell in root_.
  bool Run(const std::string& commands) const {
    return std::system(fmt::format("cd {} && {}", root_.string(), commands).c_str()) == 0;
  }
  // Compiles the module with these options.
  bool Compile(const std::string& flags) const {
    return Run(
        fmt::format("gcc -O2 -fno-pic {} -c demo.c -o demo.o && "
                    "ld -r --build-id -o demo.ko demo.o",
                    flags));
  }
  // Has kallsyms list the functions of the module as they are after it was loaded.
  void WriteKallsyms() const {
    ASSERT_TRUE(Run("nm demo.ko >symbols"));
    std::ifstream symbols(root_ / "symbols");
    std::ofstream kallsyms(root_ / "kallsyms");
    kallsyms << "ffffffff81000000 T _stext\n";
    std::string offset;
    std::string type;
    for (std::string name; symbols >> offset >> type >> name;) {
      if (type != "t" && type != "T") continue;
      const Address section = name == "fail" ? kModuleCold : kModuleText;
      kallsyms << fmt::format("{:x} t {}\t[demo_module]\n",
                              section + std::stoull(offset, nullptr, 16), name);
    }
  }
  std::unique_ptr<DomainSymbols> Load(const std::vector<SymbolSource>& more = {}) const {
    SymbolSources sources;
    sources.sources = {{kGuest, SourceKind::kKernel, (root_ / "kallsyms").string()}};
    sources.sources.insert(sources.sources.begin(), more.begin(), more.end());
    sources.roots = {{kGuest, root_.string()}};
    sources.kernels = {{kGuest, kGuestRelease}};
    auto loaded = LoadSymbols(sources);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? std::move(loaded->resolver) : nullptr;
  }
  // Each line of `submit` and `fail`, with the functions that are inlined there, in the order of
  // addresses: "submit:13>copy:4".
  static std::vector<std::string> LinesOf(DomainSymbols& symbols, std::string_view function) {
    std::vector<std::string> lines;
    for (const Address begin : {kModuleText, kModuleCold}) {
      for (Address address = begin; address < begin + 0x100; ++address) {
        const FunctionId id = symbols.Resolve(kGuest, Mode::kKernel, address);
        if (symbols.Describe(id).name != function) continue;
        std::string line;
        for (const Frame& frame : symbols.Inlined(kGuest, Mode::kKernel, address)) {
          EXPECT_THAT(frame.call_site_or_line.file, EndsWith("demo.c"));
          const std::string_view next = line.empty() ? "" : ">";
          line = fmt::format("{}:{}{}{}", frame.function, frame.call_site_or_line.line, next, line);
        }
        if (!line.empty() && (lines.empty() || lines.back() != line)) lines.push_back(line);
      }
    }
    return lines;
  }
  static void ExpectLines(DomainSymbols& symbols) {
    const std::vector<std::string> submit = LinesOf(symbols, "submit");
    EXPECT_THAT(submit, Contains("submit:13>copy:4"));
    EXPECT_THAT(submit, Contains("submit:13>copy:5"));
    EXPECT_THAT(LinesOf(symbols, "fail"), Contains("fail:8"));
    const auto place = symbols.LocationOf(kGuest, Mode::kKernel, {}, kModuleCold);
    ASSERT_TRUE(place && place->file != nullptr);
    EXPECT_FALSE(place->file->CodeAt(place->address, 4).empty());
  }

  fs::path root_;
};

TEST_F(ModuleLinesTest, AreThoseOfItsFile) {
  for (const char* const flags :
       {"-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -gz=zlib", "-gdwarf-4 -fdebug-types-section"}) {
    SCOPED_TRACE(flags);
    if (!Compile(flags)) GTEST_SKIP() << "no compiler here";
    WriteKallsyms();
    fs::remove(installed());
    fs::copy(root_ / "demo.ko", installed());
    const auto symbols = Load();
    ExpectLines(*symbols);
    const SymbolOrigin origin = symbols->OriginOf(kGuest, Mode::kKernel, {}, kModuleCold);
    EXPECT_THAT(origin.lines, EndsWith("demo-module.ko"));
    fs::remove(installed());
    ExpectLines(*Load({{kGuest, SourceKind::kModuleFile, (root_ / "demo.ko").string()}}));
  }
}

// Debian's packages of debug files have the module's path below /usr/lib/debug, Fedora's with
// ".debug"; others name it by .gnu_debuglink or by its build-id.
TEST_F(ModuleLinesTest, AreThoseOfItsDebugFile) {
  if (!Compile("-g")) GTEST_SKIP() << "no compiler here";
  WriteKallsyms();
  ASSERT_TRUE(
      Run("objcopy --only-keep-debug demo.ko whole.debug && cp demo.ko bare.ko && "
          "strip --strip-debug bare.ko"));
  ASSERT_TRUE(
      Run("cp whole.debug demo.debug && cp bare.ko linked.ko && "
          "objcopy --add-gnu-debuglink=demo.debug linked.ko"));
  const std::string below = fmt::format("lib/modules/{}/kernel", kGuestRelease);
  const std::string copy = fmt::format("cp bare.ko {}", installed().string());
  const struct {
    std::string debug_file;
    std::string install;
  } cases[] = {
      {fmt::format("usr/lib/debug/{}/demo-module.ko", below), copy},
      {fmt::format("usr/lib/debug/{}/demo-module.ko.debug", below), copy},
      {fmt::format("usr/lib/debug/usr/{}/demo-module.ko.debug", below), copy},
      {fmt::format("usr/lib/debug/{}/demo-module.ko.debug", below),
       fmt::format("xz --check=crc32 -c bare.ko >{}.xz", installed().string())},
      {fmt::format("{}/.debug/demo.debug", below),
       fmt::format("cp linked.ko {}", installed().string())},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.debug_file);
    fs::remove_all(root_ / "usr");
    fs::remove_all(root_ / "lib");
    fs::create_directories(installed().parent_path());
    ASSERT_TRUE(Run(c.install));
    EXPECT_THAT(LinesOf(*Load(), "fail"), IsEmpty()) << "its debug file is not there yet";
    fs::create_directories((root_ / c.debug_file).parent_path());
    fs::copy(root_ / "whole.debug", root_ / c.debug_file);
    ExpectLines(*Load());
  }
}

TEST_F(ModuleLinesTest, AreNotThoseOfAnotherBuild) {
  if (!Compile("-g")) GTEST_SKIP() << "no compiler here";
  WriteKallsyms();
  ASSERT_TRUE(Run(fmt::format("cp demo.ko bare.ko && strip --strip-debug bare.ko && cp bare.ko {}",
                              installed().string())));
  const std::string debug =
      fmt::format("usr/lib/debug/lib/modules/{}/kernel/demo-module.ko", kGuestRelease);
  ASSERT_TRUE(Compile("-g -O1"));
  fs::create_directories((root_ / debug).parent_path());
  fs::copy(root_ / "demo.ko", root_ / debug);
  const auto symbols = Load();
  EXPECT_THAT(LinesOf(*symbols, "submit"), IsEmpty());
  EXPECT_THAT(symbols->OriginOf(kGuest, Mode::kKernel, {}, kModuleCold).missing,
              HasSubstr("no debug file"));
}

}  // namespace
}  // namespace xenoscope::symbolizer
