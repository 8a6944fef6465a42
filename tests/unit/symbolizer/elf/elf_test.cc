// ELF symbols and DWARF, compared with other programs that read them: nm and eu-addr2line.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "symbolizer/demangle.h"
#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/elf/trimmed_file.h"
#include "symbolizer/file_content.h"
#include "symbolizer/symbol_index.h"
#include "symbolizer/text/symbol_lines.h"
#include "symbolizer/text/text_symbols.h"

// The comparisons with nm and eu-addr2line use gcc's output only: eu-addr2line cannot read clang's
// inlined frames, and clang's sanitizers add symbols of their own.
#ifdef __clang__
#define SKIP_UNLESS_GCC() GTEST_SKIP() << "not built by gcc"
#else
#define SKIP_UNLESS_GCC() static_assert(true)
#endif

namespace xenoscope::symbolizer {
namespace {

using testing::HasSubstr;

constexpr const char* kSubject = XENOSCOPE_TEST_SUBJECT;

// Returns the output of a command; nothing when it fails or is not installed.
std::string OutputOf(const std::string& command) {
  const std::unique_ptr<FILE, decltype(&pclose)> pipe(
      popen((command + " 2>/dev/null").c_str(), "r"), &pclose);
  std::string output;
  char buffer[4096];
  size_t got = 0;
  while (pipe && (got = fread(buffer, 1, sizeof buffer, pipe.get())) > 0) {
    output.append(buffer, got);
  }
  return output;
}

// A copy of the subject changed by objcopy; it is removed by the destructor.
class Copy {
 public:
  explicit Copy(const std::string& objcopy_options) {
    std::string pattern = testing::TempDir() + "subject.XXXXXX";
    const int fd = mkstemp(pattern.data());
    if (fd >= 0) close(fd);
    path_ = pattern;
    made_ = std::system(("objcopy " + objcopy_options + " " + kSubject + " " + path_).c_str()) == 0;
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy() { unlink(path_.c_str()); }

  bool made() const { return made_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool made_ = false;
};

// Checks every function that nm lists, at its first, middle and last byte.
void ExpectAgreesWithNm(const std::string& path) {
  const std::string listing = OutputOf("nm --defined-only --print-size " + path);
  if (listing.empty()) GTEST_SKIP() << "no nm here";
  const auto file = FileContent::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto elf = ElfFile::Open(file->bytes());
  ASSERT_TRUE(elf.ok()) << elf.status();
  const auto symbols = ReadElf(*elf, "image");
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  const auto index = SymbolIndex::Build(symbols->table);
  ASSERT_TRUE(index.ok()) << index.status();

  std::map<Address, std::set<std::string>> names;
  std::vector<SymbolLine> functions;
  ForEachLine(listing, [&](std::string_view text, uint64_t) {
    const auto line = ParseSymbolLine(text, LineShape::kTyped);
    if (!line || !(IsCode(line->type) || line->type == 'i')) return;
    names[line->address].emplace(line->name);
    if (line->size > 0) functions.push_back(*line);
  });
  for (const SymbolLine& f : functions) {
    for (const Address at : {f.address, f.address + f.size / 2, f.address + f.size - 1}) {
      const uint32_t found = index->Find(at);
      ASSERT_NE(found, SymbolIndex::kNoSymbol) << f.name;
      // Of nested functions the inner one is found.
      ASSERT_GE(index->Start(found), f.address) << f.name;
      EXPECT_TRUE(names[index->Start(found)].contains(std::string(index->Name(found))))
          << f.name << " became " << index->Name(found);
    }
  }
  EXPECT_FALSE(functions.empty());
}

TEST(ElfSymbols, AgreeWithNmOnTestProgram) {
  SKIP_UNLESS_GCC();
  ExpectAgreesWithNm(kSubject);
}

TEST(ElfSymbols, AgreeWithNmOnThisTest) {
  SKIP_UNLESS_GCC();

  ExpectAgreesWithNm("/proc/" + std::to_string(getpid()) + "/exe");
}

absl::StatusOr<ElfSymbols> ReadCopy(const Copy& copy) {
  XENOSCOPE_ASSIGN_OR_RETURN(const FileContent file, FileContent::Open(copy.path()));
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(file.bytes()));
  XENOSCOPE_ASSIGN_OR_RETURN(ElfSymbols symbols, ReadElf(elf, "image"));
  for (Symbol& symbol : symbols.table.functions) symbol.name = {};  // the file is gone
  return symbols;
}

TEST(ElfSymbols, StrippedFileHasExportedSymbolsOrAnError) {
  const Copy copy("--strip-all");
  if (!copy.made()) GTEST_SKIP() << "no objcopy here";
  const auto symbols = ReadCopy(copy);
  if (symbols.ok()) {
    EXPECT_TRUE(symbols->only_dynamic);
  } else {
    EXPECT_THAT(std::string(Message(symbols.status())), HasSubstr("stripped"));
  }
}

TEST(ElfFile, HasBuildIdAndRelocatability) {
  const auto file = FileContent::Open(kSubject);
  ASSERT_TRUE(file.ok());
  const auto elf = ElfFile::Open(file->bytes());
  ASSERT_TRUE(elf.ok());
  EXPECT_FALSE(elf->position_independent());
  const std::string notes = OutputOf(std::string("readelf -n ") + kSubject);
  if (notes.empty()) GTEST_SKIP() << "no readelf here";
  if (notes.find("Build ID") == std::string::npos) {
    EXPECT_EQ(elf->BuildId(), "");
  } else {
    EXPECT_THAT(notes, HasSubstr("Build ID: " + elf->BuildId() + "\n"));
  }
}

TEST(ElfFile, RefusesOtherFiles) {
  EXPECT_FALSE(ElfFile::Open(AsBytes("")).ok());
  EXPECT_FALSE(ElfFile::Open(AsBytes("\177ELF")).ok());
  EXPECT_FALSE(ElfFile::Open(AsBytes("#!/bin/sh\n")).ok());
}

// Returns the frames as eu-addr2line prints them: a function and its "file:line" in turn.
std::string Written(const std::vector<CodeFrame>& frames) {
  std::string text;
  for (const CodeFrame& frame : frames) {
    text += std::string(frame.function) + "\n";
    text += std::string(frame.file) + ":" + std::to_string(frame.line) + "\n";
  }
  return text;
}

// Checks every byte of the subject's own functions, with the DWARF of `path`, against the
// subject's.
void ExpectAgreesWithAddr2line(const std::string& path) {
  auto file = FileContent::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  auto debug_info = DebugInfo::Open(std::make_shared<FileContent>(*std::move(file)));
  ASSERT_TRUE(debug_info.ok()) << debug_info.status();
  const std::string listing = OutputOf(std::string("nm --defined-only --print-size ") + kSubject);
  size_t compared = 0;
  size_t inlined = 0;
  const auto compare = [&](const SymbolLine& function) {
    for (Address at = function.address; at < function.address + function.size; ++at) {
      std::string expected =
          OutputOf(fmt::format("eu-addr2line -f -i -C -e {} {:#x}", kSubject, at));
      if (expected.empty()) return;
      // eu-addr2line adds the column, and " inlined at ... in ..." to names of inlined functions.
      std::string plain;
      ForEachLine(expected, [&](std::string_view line, uint64_t) {
        line = line.substr(0, line.find(" inlined at "));
        const size_t colon = line.rfind(':');
        const bool has_column = colon != std::string_view::npos && line.starts_with("/") &&
                                line.substr(0, colon).rfind(':') != std::string_view::npos;
        if (has_column) line = line.substr(0, colon);
        plain += std::string(line) + "\n";
      });
      const std::vector<CodeFrame> frames = (*debug_info)->FramesAt(at);
      ASSERT_EQ(Written(frames), plain) << "at " << std::hex << at;
      ++compared;
      inlined += frames.size() > 1 ? 1 : 0;
    }
  };
  ForEachLine(listing, [&](std::string_view text, uint64_t) {
    const auto line = ParseSymbolLine(text, LineShape::kTyped);
    if (line && IsCode(line->type) && Demangled(line->name).starts_with("subject::")) {
      compare(*line);
    }
  });
  if (compared == 0) GTEST_SKIP() << "no eu-addr2line or nm here";
  EXPECT_GT(inlined, 10);
}

TEST(DebugInfo, AgreesWithAddr2line) {
  SKIP_UNLESS_GCC();
  ExpectAgreesWithAddr2line(kSubject);
}

TEST(DebugInfo, WorksWithoutDebugAranges) {
  SKIP_UNLESS_GCC();

  const Copy copy("--remove-section .debug_aranges");
  if (!copy.made()) GTEST_SKIP() << "no objcopy here";
  ExpectAgreesWithAddr2line(copy.path());
}

TEST(DebugInfo, ReadsZdebugSections) {
  SKIP_UNLESS_GCC();

  const Copy copy("--compress-debug-sections=zlib-gnu");
  if (!copy.made()) GTEST_SKIP() << "no objcopy here";
  const auto file = FileContent::Open(copy.path());
  ASSERT_TRUE(file.ok());
  const auto elf = ElfFile::Open(file->bytes());
  ASSERT_TRUE(elf.ok());
  ASSERT_FALSE(elf->Section(".zdebug_info").empty());
  ExpectAgreesWithAddr2line(copy.path());
}

// A copy as archives have it.
class TrimmedCopy {
 public:
  TrimmedCopy() {
    const auto file = FileContent::Open(kSubject);
    if (!file.ok()) return;
    bytes_ = TrimmedFile(file->bytes(), {});
    whole_ = file->bytes().size();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
  }
  TrimmedCopy(const TrimmedCopy&) = delete;
  TrimmedCopy& operator=(const TrimmedCopy&) = delete;
  ~TrimmedCopy() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  size_t whole() const { return whole_; }

 private:
  std::string path_ = testing::TempDir() + "trimmed." + std::to_string(getpid());
  std::vector<std::byte> bytes_;
  size_t whole_ = 0;
};

TEST(TrimmedFile, HasSameSymbolsAsTheFile) {
  SKIP_UNLESS_GCC();

  const TrimmedCopy copy;
  ASSERT_EQ(copy.bytes().size(), copy.whole());
  ExpectAgreesWithNm(copy.path());
  ExpectAgreesWithAddr2line(copy.path());
}

TEST(TrimmedFile, KeepsOnlyListedCode) {
  const auto whole_file = FileContent::Open(kSubject);
  ASSERT_TRUE(whole_file.ok());
  const auto whole = ElfFile::Open(whole_file->bytes());
  ASSERT_TRUE(whole.ok());
  const Bytes text = whole->Section(".text");
  ASSERT_GT(text.size(), 64);
  const Bytes listed = text.subspan(16, 32);
  const Bytes of_another = AsBytes("code");
  const std::vector<Bytes> code = {of_another, listed};
  const std::vector<std::byte> bytes = TrimmedFile(whole_file->bytes(), code);
  const auto trimmed = ElfFile::Open(bytes);
  ASSERT_TRUE(trimmed.ok());
  const auto zeros = [](Bytes part) {
    return std::ranges::count(part, std::byte{0}) == static_cast<ptrdiff_t>(part.size());
  };
  const Bytes rest = trimmed->Section(".text");
  EXPECT_TRUE(std::ranges::equal(rest.subspan(16, 32), listed));
  EXPECT_FALSE(zeros(listed));
  EXPECT_TRUE(zeros(rest.first(16)) && zeros(rest.subspan(48)));
  for (const char* const name : {".plt", ".debug_info", ".debug_line", ".symtab", ".strtab"}) {
    EXPECT_TRUE(std::ranges::equal(trimmed->Section(name), whole->Section(name))) << name;
  }
  for (const char* const name : {".rodata", ".eh_frame"}) {
    EXPECT_FALSE(zeros(whole->Section(name))) << name;
    EXPECT_TRUE(zeros(trimmed->Section(name))) << name;
  }
  EXPECT_TRUE(zeros(trimmed->Section(".debug_aranges")));  // which clang does not write
  EXPECT_EQ(trimmed->BuildId(), whole->BuildId());
}

TEST(TrimmedFile, KeepsOtherFilesUnchanged) {
  const std::string text = "#!/bin/sh\n";
  const std::vector<std::byte> trimmed = TrimmedFile(AsBytes(text), {});
  EXPECT_TRUE(std::ranges::equal(trimmed, AsBytes(text)));
}

TEST(DebugInfo, RefusesFileWithoutDebugInfo) {
  const Copy copy("--strip-debug");
  if (!copy.made()) GTEST_SKIP() << "no objcopy here";
  auto file = FileContent::Open(copy.path());
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE(DebugInfo::Open(std::make_shared<FileContent>(*std::move(file))).ok());
}

}  // namespace
}  // namespace xenoscope::symbolizer
