#include "symbolizer/text/initcalls.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "symbolizer/text/symbol_lines.h"

namespace xenoscope::symbolizer {
namespace {

struct Level {
  std::string_view number;  // as the names of entries end
  std::string_view name;
};
// include/linux/init.h. Longer numbers come before those that they end with.
constexpr std::array<Level, 18> kLevels{{{"rootfs", "rootfs"},
                                         {"early", "early"},
                                         {"con", "console"},
                                         {"1s", "core_sync"},
                                         {"2s", "postcore_sync"},
                                         {"3s", "arch_sync"},
                                         {"4s", "subsys_sync"},
                                         {"5s", "fs_sync"},
                                         {"6s", "device_sync"},
                                         {"7s", "late_sync"},
                                         {"0", "pure"},
                                         {"1", "core"},
                                         {"2", "postcore"},
                                         {"3", "arch"},
                                         {"4", "subsys"},
                                         {"5", "fs"},
                                         {"6", "device"},
                                         {"7", "late"}}};

bool IsNumber(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, absl::ascii_isdigit);
}

// Removes the word up to the next '_' from the text, and that.
std::string_view TakePart(std::string_view& text) {
  const size_t end = text.find('_');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// Returns the text behind "__NUMBER_LINE_", which follows the name of the module.
std::optional<std::string_view> BehindLine(std::string_view text) {
  for (size_t at = text.find("__"); at != std::string_view::npos; at = text.find("__", at + 1)) {
    std::string_view rest = text.substr(at + 2);
    const std::string_view number = TakePart(rest);
    const std::string_view line = TakePart(rest);
    if (IsNumber(number) && IsNumber(line)) return rest;
  }
  return std::nullopt;
}

struct Entry {
  std::string_view function;
  std::string_view level;
};

// Takes the name of an entry apart.
std::optional<Entry> ParseEntry(std::string_view name) {
  constexpr std::string_view kPrefix = "__initcall_";
  constexpr std::string_view kModule = "_kmod_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (name.starts_with(kModule)) {
    const auto rest = BehindLine(name.substr(kModule.size()));
    if (!rest) return std::nullopt;
    name = *rest;
  }
  const auto* const found = std::ranges::find_if(
      kLevels, [name](const Level& level) { return name.ends_with(level.number); });
  if (found == kLevels.end() || name.size() == found->number.size()) return std::nullopt;
  name.remove_suffix(found->number.size());
  return Entry{name, found->name};
}

}  // namespace

std::vector<Initcall> ReadInitcalls(std::string_view kallsyms) {
  absl::flat_hash_map<std::string_view, std::vector<std::string>> levels_of;
  ForEachLine(kallsyms, [&](std::string_view line, uint64_t) {
    const auto symbol = ParseSymbolLine(line, LineShape::kTyped);
    const auto entry = symbol ? ParseEntry(symbol->name) : std::nullopt;
    if (!entry) return;
    std::vector<std::string>& levels = levels_of[entry->function];
    if (std::ranges::find(levels, entry->level) == levels.end()) levels.emplace_back(entry->level);
  });
  std::vector<Initcall> initcalls;
  ForEachLine(kallsyms, [&](std::string_view line, uint64_t) {
    const auto symbol = ParseSymbolLine(line, LineShape::kTyped);
    if (!symbol || !IsCode(symbol->type) || !symbol->module.empty()) return;
    const auto found = levels_of.find(symbol->name);
    if (found == levels_of.end()) return;
    initcalls.push_back({symbol->address, std::string(symbol->name), found->second});
  });
  std::ranges::stable_sort(initcalls, {}, &Initcall::address);
  return initcalls;
}

}  // namespace xenoscope::symbolizer
