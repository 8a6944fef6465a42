// Readers of a running Linux kernel's symbols, those of modules included: /proc/kallsyms,
// /proc/modules.
#include <fmt/format.h>

#include <charconv>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "symbolizer/text/symbol_lines.h"
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {
namespace {

// Parses "name size users users'-names state address", six words and flags.
std::optional<Module> ParseModule(std::string_view line) {
  Module module;
  std::string_view word;
  for (int i = 0; i < 6; ++i) {
    const size_t space = line.find(' ');
    word = line.substr(0, space);
    line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
    if (i == 0) {
      module.name = std::string(word);
    } else if (i == 1) {
      const auto [end, error] =
          std::from_chars(word.data(), word.data() + word.size(), module.size);
      if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    }
  }
  const auto base = TakeHex(word);
  if (module.name.empty() || !base || !word.empty()) return std::nullopt;
  module.base = *base;
  return module;
}

// The numbers of modules' images, in the order of their appearance.
class ModuleImages {
 public:
  explicit ModuleImages(SymbolTable& table) : table_(table) {}

  uint32_t NumberOf(std::string_view module) {
    if (module.empty()) return 0;
    if (module == last_) return last_image_;  // the symbols of a module are adjacent
    const auto next = static_cast<uint32_t>(table_.images.size());
    const auto [found, is_new] = images_.try_emplace(std::string(module), next);
    if (is_new) table_.images.push_back(fmt::format("[{}]", module));
    last_ = module;
    last_image_ = found->second;
    return last_image_;
  }

 private:
  SymbolTable& table_;
  absl::flat_hash_map<std::string, uint32_t> images_;
  std::string_view last_;
  uint32_t last_image_ = 0;
};

}  // namespace

ModuleList ReadModules(std::string_view text) {
  ModuleList list;
  ForEachLine(text, [&](std::string_view line, uint64_t) {
    auto module = ParseModule(line);
    if (!module) {
      ++list.malformed;
    } else if (module->base == 0) {
      ++list.hidden;
    } else {
      list.modules.push_back(*std::move(module));
    }
  });
  return list;
}

absl::StatusOr<SymbolTable> ReadKallsyms(std::string_view text,
                                         const std::vector<Module>& modules) {
  SymbolTable table;
  table.images.emplace_back(kKernelImage);
  ModuleImages images(table);
  uint64_t hidden = 0;
  ForEachLine(text, [&](std::string_view line, uint64_t number) {
    const auto symbol = ParseSymbolLine(line, LineShape::kTyped);
    if (!symbol) {
      table.lines.Malformed(number);
    } else if (IsCode(symbol->type)) {
      ++table.lines.functions;
      if (symbol->address == 0) {
        ++hidden;
        return;
      }
      table.AddCode({.address = symbol->address,
                     .name = symbol->name,
                     .binding = BindingOf(symbol->type),
                     .image = images.NumberOf(symbol->module)});
    } else {
      ++table.lines.others;
      // Symbols of type 'A' are offsets in the per-CPU area, not addresses.
      if (symbol->type != 'A' && symbol->type != 'a') table.ends.push_back(symbol->address);
    }
  });
  XENOSCOPE_RETURN_IF_ERROR(CheckIsSymbolText(table.lines, "address type name [module]"));
  if (hidden > 0 && hidden >= table.functions.size()) {
    return PreconditionError(
        "kptr_restrict hides the addresses of {} functions; copy /proc/kallsyms as root with "
        "kernel.kptr_restrict at 0 or 1",
        hidden);
  }
  if (table.functions.empty()) {
    return NotFoundError(
        "it has no functions; Debian's System.map, for one, is an empty stand-in: take the "
        "kernel's /proc/kallsyms or its vmlinux");
  }
  for (const Module& module : modules) {
    table.ends.push_back(module.base);
    if (module.size <= ~module.base) table.ends.push_back(module.base + module.size);
  }
  return table;
}

}  // namespace xenoscope::symbolizer
