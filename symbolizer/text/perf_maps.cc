#include "symbolizer/text/perf_maps.h"

#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "symbolizer/text/symbol_lines.h"

namespace xenoscope::symbolizer {
namespace {

// Returns the process of a line "# 1234".
std::optional<uint32_t> ProcessOf(std::string_view line) {
  if (!line.starts_with("# ")) return std::nullopt;
  line.remove_prefix(2);
  uint32_t pid = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
  if (error != std::errc() || end != line.data() + line.size()) return std::nullopt;
  return pid;
}

}  // namespace

std::optional<Symbol> ReadPerfMapLine(std::string_view line) {
  const auto start = TakeHex(line);
  if (!start || !line.starts_with(' ')) return std::nullopt;
  line.remove_prefix(1);
  const auto size = TakeHex(line);
  if (!size || *size == 0 || *start + *size < *start || !line.starts_with(' ')) {
    return std::nullopt;
  }
  line.remove_prefix(1);
  if (line.empty()) return std::nullopt;
  return Symbol{.address = *start, .size = *size, .name = line};
}

PerfMaps PerfMaps::Read(std::string_view text) {
  PerfMaps maps;
  std::map<uint32_t, std::map<Address, Symbol>> functions;  // by process
  std::map<Address, Symbol>* current = nullptr;
  ForEachLine(text, [&](std::string_view line, uint64_t number) {
    if (const auto pid = ProcessOf(line)) {
      ++maps.lines_.others;
      current = &functions[*pid];
      return;
    }
    if (line == "# cut") {
      ++maps.lines_.others;
      maps.cut_ = true;
      return;
    }
    const auto function = ReadPerfMapLine(line);
    if (!function || current == nullptr) {
      maps.lines_.Malformed(number);
      return;
    }
    ++maps.lines_.functions;
    current->insert_or_assign(function->address, *function);
  });
  for (const auto& [pid, known] : functions) {
    SymbolTable table;
    table.images.emplace_back(kJitImage);
    for (const auto& [address, function] : known) table.functions.push_back(function);
    auto index = SymbolIndex::Build(table);
    if (index.ok()) maps.indexes_.emplace(pid, *std::move(index));
  }
  return maps;
}

const SymbolIndex* PerfMaps::FunctionsOf(uint32_t pid) const {
  const auto found = indexes_.find(pid);
  return found == indexes_.end() ? nullptr : &found->second;
}

}  // namespace xenoscope::symbolizer
