#include "symbolizer/livepatches.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <tuple>

#include "symbolizer/text/symbol_lines.h"

namespace xenoscope::symbolizer {
namespace {

constexpr std::string_view kTitle = "'x' pressed - Dumping all livepatch patches";

// Removes `prefix` from the beginning of `text`; false: it is not there.
bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool Holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Removes from `text` the part before the last `mark`, and the mark, and returns that part.
std::optional<std::string_view> TakeBeforeLast(std::string_view& text, std::string_view mark) {
  const size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + mark.size());
  return before;
}

// Takes "(DIGITS)" from the beginning of `text`.
std::optional<uint64_t> TakeSize(std::string_view& text) {
  uint64_t size = 0;
  if (!text.starts_with('(')) return std::nullopt;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data() + 1, end, size);
  if (error != std::errc() || after == end || *after != ')') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(after - text.data()) + 1);
  return size;
}

std::string Printable(std::string_view name) {
  std::string text(name);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// Returns what Xen printed in the line, without "(XEN) " and the time that console_timestamps adds.
std::optional<std::string_view> Printed(std::string_view line) {
  if (!Take(line, "(XEN) ")) return std::nullopt;
  if (line.starts_with('[')) {
    const size_t end = line.find("] ");
    if (end != std::string_view::npos) line.remove_prefix(end + 2);
  }
  return line.substr(0, line.find_last_not_of('\r') + 1);
}

// Parses "NAME state=STATE(N) CODE (.data=DATA, ...", from the end, as names may hold anything.
std::optional<Livepatch> ParsePatch(std::string_view line) {
  const auto name = TakeBeforeLast(line, " state=");
  if (!name || name->empty()) return std::nullopt;
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  line.remove_prefix(blank + 1);
  const auto begin = TakeHex(line);
  if (!begin || !Take(line, " (.data=")) return std::nullopt;
  const auto end = TakeHex(line);
  if (!end || !line.starts_with(',') || *end < *begin) return std::nullopt;
  return Livepatch{
      .name = Printable(*name), .begin = *begin, .end = *end, .build_id = {}, .functions = {}};
}

// Parses "NAME patch OLD(SIZE) with NEW (SIZE)".
std::optional<LivepatchFunction> ParseFunction(std::string_view line) {
  std::string_view by = line;
  auto what = TakeBeforeLast(by, " with ");
  if (!what) return std::nullopt;
  std::string_view old = *what;
  const auto name = TakeBeforeLast(old, " patch ");
  if (!name || name->empty() || !TakeHex(old) || !TakeSize(old) || !old.empty()) {
    return std::nullopt;
  }
  const auto address = TakeHex(by);
  if (!address || !Take(by, " ")) return std::nullopt;
  const auto size = TakeSize(by);
  if (!size || !by.empty()) return std::nullopt;
  return LivepatchFunction{.name = Printable(*name), .address = *address, .size = *size};
}

bool IsHexadecimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool Holds(const Livepatch& patch, const LivepatchFunction& function) {
  return patch.begin <= function.address && function.address < patch.end && function.size > 0 &&
         function.size <= patch.end - function.address;
}

// Drops duplicates, and all livepatches that share addresses, as it is not known which of them ran.
void DropOverlapping(LivepatchList& list) {
  std::vector<Livepatch>& patches = list.patches;
  std::ranges::stable_sort(patches, {}, [](const Livepatch& patch) {
    return std::tie(patch.begin, patch.end, patch.name, patch.build_id);
  });
  patches.erase(std::unique(patches.begin(), patches.end()), patches.end());
  std::vector<bool> disputed(patches.size());
  size_t furthest = 0;  // index of the livepatch before that ends last
  for (size_t i = 1; i < patches.size(); ++i) {
    if (patches[i].begin < std::min(patches[furthest].end, patches[i].end)) {
      disputed[i] = disputed[furthest] = true;
    }
    if (patches[i].end > patches[furthest].end) furthest = i;
  }
  list.displaced = static_cast<uint64_t>(std::ranges::count(disputed, true));
  size_t at = 0;
  std::erase_if(patches, [&](const Livepatch&) { return disputed[at++]; });
}

}  // namespace

bool BeginsLivepatchList(std::string_view line) { return Printed(line) == kTitle; }

bool HasLivepatchList(std::string_view text) { return Holds(text, kTitle); }

LivepatchList ReadLivepatches(std::string_view text) {
  LivepatchList list;
  Livepatch* patch = nullptr;  // livepatch of the present line
  ForEachLine(text, [&](std::string_view line, uint64_t) {
    auto printed = Printed(line);
    if (!printed) return;
    if (*printed == kTitle) {
      patch = nullptr;
    } else if (Take(*printed, " name=")) {
      auto parsed = ParsePatch(*printed);
      if (!parsed) ++list.malformed;
      patch = parsed ? &list.patches.emplace_back(*std::move(parsed)) : nullptr;
    } else if (patch != nullptr && Take(*printed, "    ")) {
      auto function = ParseFunction(*printed);
      if (!function || (function->address != 0 && !Holds(*patch, *function))) {
        list.malformed += Holds(*printed, " patch ") ? 1 : 0;
      } else if (function->address != 0) {  // 0: the old function is replaced by nothing
        patch->functions.push_back(*std::move(function));
      }
    } else if (patch != nullptr && Take(*printed, "build-id=")) {
      if (IsHexadecimal(*printed)) patch->build_id = std::string(*printed);
    }
  });
  DropOverlapping(list);
  return list;
}

}  // namespace xenoscope::symbolizer
