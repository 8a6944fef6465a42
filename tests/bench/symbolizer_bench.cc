// What symbols cost: reading a kernel's, the index alone, and the resolver with addresses that it
// has just met (warm) and that it has not (cold); lines and inlined frames of this very program.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "symbolizer/domain_symbols.h"
#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/file_content.h"
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {
namespace {

constexpr Address kBase = 0xffffffff81000000;
constexpr Address kMeanLength = 300;
constexpr size_t kFunctions = 150'000;  // as many as Debian's kernel and all its modules have

// A kallsyms of the size of a distribution's kernel.
std::string Kallsyms() {
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same every time
  std::string text;
  Address address = kBase;
  for (size_t i = 0; i < kFunctions; ++i) {
    text += fmt::format("{:016x} {} function_number_{}\n", address, i % 2 == 0 ? 't' : 'T', i);
    address += 16 + 16 * (random() % (2 * kMeanLength / 16));
  }
  return text + fmt::format("{:016x} T _etext\n", address);
}

SymbolIndex Index(const std::string& text) {
  return SymbolIndex::Build(ReadKallsyms(text).value()).value();
}

std::vector<Address> Addresses(size_t count, Address begin, Address end) {
  std::mt19937_64 random(2);  // NOLINT(cert-msc51-cpp): the same every time
  std::vector<Address> addresses(count);
  for (Address& address : addresses) address = begin + random() % (end - begin);
  return addresses;
}

void BM_ReadKallsymsAndBuild(benchmark::State& state) {
  const std::string text = Kallsyms();
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) benchmark::DoNotOptimize(Index(text));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kFunctions));
}
BENCHMARK(BM_ReadKallsymsAndBuild)->Unit(benchmark::kMillisecond);

void BM_Find(benchmark::State& state) {
  const SymbolIndex index = Index(Kallsyms());
  const auto addresses = Addresses(1 << 16, index.begin(), index.end());
  size_t i = 0;
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) benchmark::DoNotOptimize(index.Find(addresses[i++ % addresses.size()]));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Find);

// `distinct` addresses in turn: 1024 stay in the cache of recent ones, a million never do.
void BM_Resolve(benchmark::State& state) {
  DomainSymbols symbols;
  const auto index = std::make_shared<const SymbolIndex>(Index(Kallsyms()));
  symbols.Add(kDom0, Mode::kKernel, index);
  const auto addresses =
      Addresses(static_cast<size_t>(state.range(0)), index->begin(), index->end());
  size_t i = 0;
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        symbols.Resolve(kDom0, Mode::kKernel, addresses[i++ % addresses.size()]));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Resolve)->ArgName("distinct")->Arg(1 << 10)->Arg(1 << 20);

// Opening a file and 10,000 addresses in it once each.
void BM_FramesCold(benchmark::State& state) {
  const auto file = FileContent::Open("/proc/self/exe").value();
  const auto elf = ElfFile::Open(file.bytes()).value();
  const auto index = SymbolIndex::Build(ReadElf(elf, "self").value().table).value();
  const auto addresses = Addresses(10'000, index.begin(), index.end());
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) {
    const auto debug =
        DebugInfo::Open(std::make_shared<FileContent>(FileContent::Open("/proc/self/exe").value()));
    if (!debug.ok()) return state.SkipWithError("built without debug information");
    for (const Address address : addresses) {
      benchmark::DoNotOptimize((*debug)->FramesAt(address));
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * addresses.size()));
}
BENCHMARK(BM_FramesCold)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace xenoscope::symbolizer
