#include "symbolizer/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "symbolizer/disassembly.h"
#include "symbolizer/text/symbol_lines.h"

namespace xenoscope::symbolizer {
namespace {

constexpr uint64_t kMaxFunctionBytes = uint64_t{1} << 20;
constexpr uint32_t kContextLines = 5;  // lines shown before and after one with samples
constexpr size_t kMaxLineBytes = 4096;

void Add(const std::vector<double>& samples, std::vector<double>& to) {
  to.resize(std::max(to.size(), samples.size()));
  for (size_t i = 0; i < samples.size(); ++i) to[i] += samples[i];
}

double Sum(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0);
}

struct LineSamples {
  std::vector<double> samples;
  std::map<std::string, std::vector<double>> inlined;
};

std::string NameOf(std::string_view path) {
  return std::filesystem::path(path).filename().string();
}

absl::StatusOr<std::vector<std::string>> ReadSource(const SourceFinder& sources,
                                                    const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(const FileContent content, sources.Open(path));
  std::vector<std::string> lines;
  ForEachLine(AsText(content.bytes()), [&lines](std::string_view line, uint64_t) {
    std::string& text = lines.emplace_back();
    for (const char c : line.substr(0, kMaxLineBytes)) {
      if (c == '\t') {
        text.append(8 - text.size() % 8, ' ');
      } else if (static_cast<unsigned char>(c) >= ' ' && c != '\x7f') {  // nothing for a terminal
        text += c;
      }
    }
  });
  return lines;
}

std::vector<ListedLine::Inlined> SortedBySamples(
    const std::map<std::string, std::vector<double>>& inlined) {
  std::vector<ListedLine::Inlined> sorted;
  sorted.reserve(inlined.size());
  for (const auto& [function, samples] : inlined) sorted.push_back({function, samples});
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return Sum(a.samples) > Sum(b.samples); });
  return sorted;
}

// Returns whether the outermost of the frames is a line of the file.
bool IsLineOf(const std::vector<CodeFrame>& frames, std::string_view path) {
  return !frames.empty() && frames.back().file == path && frames.back().line != 0;
}

// Returns the file in which the function is written; nothing when no line is known. The function
// may be in several files, by #include: the one with the most samples is listed.
std::optional<std::string> FileOfFunction(DebugInfo& debug_info,
                                          std::span<const SampledAddress> samples) {
  std::vector<CodeFrame> frames;
  std::map<std::string, double> files;
  for (const SampledAddress& sample : samples) {
    debug_info.FramesAt(sample.address, frames);
    if (!frames.empty() && frames.back().line != 0) {
      files[std::string(frames.back().file)] += Sum(sample.samples);
    }
  }
  if (files.empty()) return std::nullopt;
  return std::max_element(files.begin(), files.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// The samples of a function's lines, by number, and those that have no line of its file.
struct FunctionSamples {
  std::map<uint32_t, LineSamples> lines;
  LineSamples elsewhere;
};

FunctionSamples SamplesByLine(DebugInfo& debug_info, std::span<const SampledAddress> samples,
                              std::string_view path) {
  FunctionSamples found;
  std::vector<CodeFrame> frames;
  for (const SampledAddress& sample : samples) {
    debug_info.FramesAt(sample.address, frames);
    LineSamples& line = IsLineOf(frames, path) ? found.lines[frames.back().line] : found.elsewhere;
    Add(sample.samples, line.samples);
    if (frames.size() < 2) continue;
    const CodeFrame& innermost = frames.front();
    Add(sample.samples, line.inlined[fmt::format("{} ({}:{})", innermost.function,
                                                 NameOf(innermost.file), innermost.line)]);
  }
  return found;
}

// Returns the first and the last line of the function, including those without samples.
std::pair<uint32_t, uint32_t> ExtentOf(DebugInfo& debug_info, const CodeLocation& function,
                                       std::string_view path,
                                       const std::map<uint32_t, LineSamples>& lines) {
  std::set<uint32_t> written;
  for (const auto& [number, line] : lines) written.insert(number);
  std::vector<CodeFrame> frames;
  const Address end = std::min(function.function_end, function.function_begin + kMaxFunctionBytes);
  for (Address at = function.function_begin; at < end; ++at) {
    debug_info.FramesAt(at, frames);
    if (IsLineOf(frames, path)) written.insert(frames.back().line);
  }
  return {*written.begin(), *written.rbegin()};
}

// Adds the lines in [first, last] that are near samples, with "..." where others are left out.
void AddLinesNearSamples(uint32_t first, uint32_t last,
                         const std::map<uint32_t, LineSamples>& lines,
                         const std::vector<std::string>& source, Listing& listing) {
  bool left_out = false;
  for (uint32_t number = first; number <= last; ++number) {
    const auto near = lines.lower_bound(number <= kContextLines ? 0 : number - kContextLines);
    if (near == lines.end() || near->first > number + kContextLines) {
      // Skips to the next line that is near samples.
      left_out = true;
      if (near == lines.end()) break;
      number = near->first - kContextLines - 1;
      continue;
    }
    if (std::exchange(left_out, false) && !listing.lines.empty()) {
      listing.lines.push_back({"...", "", {}});
    }
    const auto found = lines.find(number);
    ListedLine& line = listing.lines.emplace_back();
    line.place = fmt::format("{}", number);
    if (number <= source.size()) line.code = source[number - 1];
    if (found == lines.end()) continue;
    line.samples = found->second.samples;
    line.inlined = SortedBySamples(found->second.inlined);
  }
}

std::map<Address, std::vector<double>> SamplesByAddress(std::span<const SampledAddress> samples) {
  std::map<Address, std::vector<double>> by_address;
  for (const SampledAddress& sample : samples) Add(sample.samples, by_address[sample.address]);
  return by_address;
}

std::string PlaceOf(Address address, const CodeLocation& function) {
  return fmt::format("+{:#x}", address - function.function_begin);
}

}  // namespace

absl::StatusOr<Listing> ListSource(const CodeLocation& function,
                                   std::span<const SampledAddress> samples,
                                   const SourceFinder& sources) {
  if (function.file == nullptr || function.file->debug_info() == nullptr) {
    return NotFoundError("no file with its debug information is available, so there are no lines");
  }
  DebugInfo& debug_info = *function.file->debug_info();
  const std::optional<std::string> path = FileOfFunction(debug_info, samples);
  if (!path) return NotFoundError("debug information has no lines for it");
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> source, ReadSource(sources, *path));

  const FunctionSamples found = SamplesByLine(debug_info, samples, *path);
  const auto [first, last] = ExtentOf(debug_info, function, *path, found.lines);
  Listing listing;
  listing.title = *path;
  AddLinesNearSamples(first, last, found.lines, source, listing);
  if (!found.elsewhere.samples.empty()) {
    listing.lines.push_back({"?", "[no line of this file]", found.elsewhere.samples,
                             SortedBySamples(found.elsewhere.inlined)});
  }
  return listing;
}

Listing ListAddresses(const CodeLocation& function, std::span<const SampledAddress> samples) {
  Listing listing;
  listing.title = "instructions";
  for (const auto& [address, taken] : SamplesByAddress(samples)) {
    listing.lines.push_back({PlaceOf(address, function), "", taken});
  }
  return listing;
}

absl::StatusOr<Listing> ListInstructions(const CodeLocation& function,
                                         std::span<const SampledAddress> samples) {
  const uint64_t size =
      std::min(function.function_end - function.function_begin, kMaxFunctionBytes);
  const Bytes code =
      function.file == nullptr ? Bytes() : function.file->CodeAt(function.function_begin, size);
  if (code.empty()) return ListAddresses(function, samples);
  XENOSCOPE_ASSIGN_OR_RETURN(const Disassembler disassembler, Disassembler::Load());
  Listing listing;
  listing.title = "instructions";
  const auto by_address = SamplesByAddress(samples);
  DebugInfo* debug_info = function.file->debug_info();
  std::vector<CodeFrame> frames;
  std::string last;
  for (const Instruction& instruction : disassembler.Disassemble(code, function.function_begin)) {
    ListedLine& line = listing.lines.emplace_back();
    line.place = PlaceOf(instruction.address, function);
    line.code = instruction.text;
    // A sampled address inside an instruction belongs to that instruction.
    for (auto at = by_address.lower_bound(instruction.address);
         at != by_address.end() && at->first < instruction.address + instruction.size; ++at) {
      Add(at->second, line.samples);
    }
    if (debug_info == nullptr) continue;
    debug_info->FramesAt(instruction.address, frames);
    if (frames.empty() || frames.front().line == 0) continue;
    std::string source = fmt::format("{}:{}", NameOf(frames.front().file), frames.front().line);
    if (source != last) line.code += fmt::format("   # {}", source);
    last = std::move(source);
  }
  return listing;
}

}  // namespace xenoscope::symbolizer
