// Functions, inlined frames and lines of addresses of one ELF file, by the reports' own code:
// what scripts/bench-symbolize times, and what tests compare with other programs.
//
//   symbolize FILE < ADDRESSES        as `llvm-symbolizer -f -i` prints them, without columns
//   symbolize --names FILE < ADDRESSES   the symbol table's functions alone, a line each
//   symbolize --lookups FILE N        how long N lookups take once all is read, and the memory
//
// --cache DIR before these: what was read of debug information is kept there, as reports do.
#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "symbolizer/demangle.h"
#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/image_file.h"
#include "symbolizer/symbol_index.h"
#include "symbolizer/text/symbol_lines.h"

namespace xenoscope::symbolizer {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

struct Image {
  std::unique_ptr<ImageFile> file;
  SymbolIndex names;
  DebugInfo* debug_info;
};

std::shared_ptr<const IndexCache> cache;  // NOLINT(*-avoid-non-const-global-variables)

absl::StatusOr<Image> Open(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(FileContent content, FileContent::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(auto file,
                             ImageFile::Open(std::move(content), path, FileFinder(), cache));
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfSymbols symbols, file->ReadSymbols(path));
  XENOSCOPE_ASSIGN_OR_RETURN(SymbolIndex names, SymbolIndex::Build(symbols.table));
  DebugInfo* debug_info = file->debug_info();
  if (debug_info == nullptr) return NotFoundError("{} has no debug information", path);
  return Image{std::move(file), std::move(names), debug_info};
}

std::vector<Address> ReadAddresses() {
  std::string text;
  std::vector<char> buffer(1 << 16);
  size_t got = 0;
  while ((got = std::fread(buffer.data(), 1, buffer.size(), stdin)) > 0) {
    text.append(buffer.data(), got);
  }
  std::vector<Address> addresses;
  ForEachLine(text, [&addresses](std::string_view line, uint64_t) {
    if (const auto address = TakeHex(line)) addresses.push_back(*address);
  });
  return addresses;
}

absl::Status Print(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Image image, Open(path));
  const std::vector<Address> addresses = ReadAddresses();
  image.debug_info->ReadUnitsOf(addresses);
  std::string out;
  std::vector<CodeFrame> frames;
  std::vector<std::string> names(image.names.size());
  for (const Address address : addresses) {
    image.debug_info->FramesAt(address, frames);
    if (frames.empty()) frames.emplace_back();
    // A function has the name that the symbol table has for it, as in reports.
    if (const uint32_t symbol = image.names.Find(address); symbol != SymbolIndex::kNoSymbol) {
      if (names[symbol].empty()) names[symbol] = Demangled(image.names.Name(symbol));
      frames.back().function = names[symbol];
    }
    for (const CodeFrame& frame : frames) {
      fmt::format_to(std::back_inserter(out), "{}\n{}:{}\n",
                     frame.function.empty() ? "??" : frame.function,
                     frame.file.empty() ? "??" : frame.file, frame.line);
    }
    out += '\n';
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return absl::OkStatus();
}

absl::Status PrintNames(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(FileContent content, FileContent::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(auto file, ImageFile::Open(std::move(content), path, FileFinder()));
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfSymbols symbols, file->ReadSymbols(path));
  XENOSCOPE_ASSIGN_OR_RETURN(const SymbolIndex names, SymbolIndex::Build(symbols.table));
  for (const Address address : ReadAddresses()) {
    const uint32_t symbol = names.Find(address);
    fmt::print("{}\n", symbol == SymbolIndex::kNoSymbol ? "??" : Demangled(names.Name(symbol)));
  }
  return absl::OkStatus();
}

double PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

absl::Status TimeLookups(const std::string& path, size_t count) {
  const auto begin = Clock::now();
  XENOSCOPE_ASSIGN_OR_RETURN(const Image image, Open(path));
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same every time
  std::vector<Address> addresses(count);
  for (Address& address : addresses) {
    address = image.names.begin() + random() % (image.names.end() - image.names.begin());
  }
  const auto opened = Clock::now();
  image.debug_info->ReadUnitsOf(addresses);
  const auto read = Clock::now();
  std::vector<CodeFrame> frames;
  uint64_t found = 0;
  for (const Address address : addresses) {
    image.debug_info->FramesAt(address, frames);
    found += frames.size();
  }
  const auto looked_up = Clock::now();
  uint64_t named = 0;
  for (const Address address : addresses) {
    named += image.names.Find(address) != SymbolIndex::kNoSymbol ? 1 : 0;
  }
  const auto end = Clock::now();
  fmt::print("open                         {:8.1f} ms\n", 1e3 * Seconds(begin, opened));
  fmt::print("read all units               {:8.1f} ms\n", 1e3 * Seconds(opened, read));
  fmt::print("{} addresses to {} frames {:8.1f} ms\n", count, found,
             1e3 * Seconds(read, looked_up));
  fmt::print("{} addresses to {} names  {:8.1f} ms, {:.1f} million/s\n", count, named,
             1e3 * Seconds(looked_up, end),
             1e-6 * static_cast<double>(count) / Seconds(looked_up, end));
  fmt::print("memory: names {:.1f} MiB, debug information {:.1f} MiB, the process {:.1f} MiB\n",
             static_cast<double>(image.names.MemoryUsed()) / 1048576,
             static_cast<double>(image.debug_info->MemoryUsed()) / 1048576, PeakMemory());
  return absl::OkStatus();
}

}  // namespace
}  // namespace xenoscope::symbolizer

int main(int argc, char** argv) {
  using xenoscope::symbolizer::Print;
  using xenoscope::symbolizer::PrintNames;
  using xenoscope::symbolizer::TimeLookups;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() > 2 && arguments[0] == "--cache") {
    xenoscope::symbolizer::cache =
        std::make_shared<const xenoscope::symbolizer::IndexCache>(arguments[1]);
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  absl::Status status;
  size_t count = 0;
  if (arguments.size() == 1) {
    status = Print(arguments[0]);
  } else if (arguments.size() == 2 && arguments[0] == "--names") {
    status = PrintNames(arguments[1]);
  } else if (arguments.size() == 3 && arguments[0] == "--lookups" &&
             std::from_chars(arguments[2].data(), arguments[2].data() + arguments[2].size(), count)
                     .ec == std::errc()) {
    status = TimeLookups(arguments[1], count);
  } else {
    std::fputs(
        "symbolize FILE < ADDRESSES | symbolize --names FILE < ADDRESSES | "
        "symbolize --lookups FILE N; --cache DIR before these\n",
        stderr);
    return 2;
  }
  if (status.ok()) return 0;
  fmt::print(stderr, "symbolize: {}\n", xenoscope::Message(status));
  return 1;
}
