#include "cli/annotated_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "symbolizer/listing.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;

double Sum(const std::vector<double>& samples) {
  double sum = 0;
  for (const double part : samples) sum += part;
  return sum;
}

// The places of a function's samples in its file.
struct Places {
  symbolizer::CodeLocation function;
  std::vector<symbolizer::SampledAddress> samples;
};

Places PlacesOf(const ProfileSource& source, const report::ProfileReport& profile,
                const SampledFunction& function, const std::vector<std::string>& exits) {
  Places places;
  for (const ProfileRow* row : function.rows) {
    const auto place =
        source.symbols().LocationOf(row->domain, row->mode, row->process, row->address);
    if (!place) continue;
    places.function = *place;
    symbolizer::SampledAddress& sample = places.samples.emplace_back();
    sample.address = place->address;
    sample.samples.resize(std::max<size_t>(1, exits.size()));
    const auto exit = std::ranges::find(exits, report::ContextName(profile, row->exit));
    sample.samples[exit == exits.end() ? 0 : static_cast<size_t>(exit - exits.begin())] =
        row->samples;
  }
  return places;
}

// Returns the listing of the source, else of the instructions, with a caution in that case.
symbolizer::Listing ListingOf(const Places& places, const CodeOptions& options,
                              report::AnnotatedFunction& annotated) {
  absl::StatusOr<symbolizer::Listing> listing = absl::CancelledError("not selected");
  if (!options.instructions) {
    listing = symbolizer::ListSource(places.function, places.samples,
                                     symbolizer::SourceFinder(options.sources));
  }
  if (listing.ok()) return *std::move(listing);
  const absl::Status no_source = listing.status();
  listing = symbolizer::ListInstructions(places.function, places.samples);
  if (!listing.ok()) {
    annotated.cautions.push_back(
        fmt::format("{}, so only addresses are shown", Message(listing.status())));
    return symbolizer::ListAddresses(places.function, places.samples);
  }
  const bool has_code = std::ranges::any_of(
      listing->lines, [](const symbolizer::ListedLine& line) { return !line.code.empty(); });
  if (!has_code) {
    annotated.cautions.push_back(
        fmt::format("the code of {} is not available, so only addresses are shown; name its ELF "
                    "file with --kernel, --xen-syms or --image",
                    annotated.image));
  } else if (!options.instructions) {
    annotated.cautions.push_back(fmt::format("instructions: {}", Message(no_source)));
  }
  return *std::move(listing);
}

}  // namespace

std::vector<Dimension> CodeColumns(bool by_exit) {
  std::vector<Dimension> columns{Dimension::kDomain,   Dimension::kMode,    Dimension::kImage,
                                 Dimension::kFunction, Dimension::kAddress, Dimension::kProcess};
  if (by_exit) columns.push_back(Dimension::kExit);
  return columns;
}

std::vector<std::string> SourceDirectories(std::vector<std::string> sources,
                                           const SymbolOptions& symbols) {
  if (sources.empty()) sources.emplace_back(".");
  if (!symbols.symfs.empty()) sources.push_back(symbols.symfs);
  return sources;
}

std::vector<SampledFunction> SampledFunctions(const std::vector<ProfileRow>& rows,
                                              const std::function<bool(const ProfileRow&)>& wants) {
  std::map<std::tuple<DomainId, std::string, std::string>, SampledFunction> functions;
  for (const ProfileRow& row : rows) {
    if (!wants(row)) continue;
    SampledFunction& function = functions[{row.domain, row.image, row.function}];
    function.rows.push_back(&row);
    function.samples += row.samples;
    function.share += row.share;
  }
  std::vector<SampledFunction> sorted;
  sorted.reserve(functions.size());
  for (auto& [key, function] : functions) {
    std::tie(function.domain, function.image, function.function) = key;
    sorted.push_back(std::move(function));
  }
  std::ranges::stable_sort(sorted, std::ranges::greater(), &SampledFunction::samples);
  return sorted;
}

std::vector<std::string> ExitsOf(const report::ProfileReport& profile,
                                 std::span<const SampledFunction> functions) {
  std::map<std::string, double> samples;
  for (const SampledFunction& function : functions) {
    for (const ProfileRow* row : function.rows) {
      samples[report::ContextName(profile, row->exit)] += row->samples;
    }
  }
  std::vector<std::string> exits;
  exits.reserve(samples.size());
  for (const auto& [exit, ignored] : samples) exits.push_back(exit);
  std::ranges::sort(exits, [&](const auto& a, const auto& b) { return samples[a] > samples[b]; });
  return exits;
}

report::AnnotatedFunction Annotate(const ProfileSource& source,
                                   const report::ProfileReport& profile,
                                   const SampledFunction& function,
                                   const std::vector<std::string>& exits,
                                   const CodeOptions& options) {
  report::AnnotatedFunction annotated;
  annotated.domain = report::DomainTitle(function.domain, source.DomainName(function.domain));
  annotated.image = function.image;
  annotated.function = function.function;
  annotated.samples = function.samples;
  annotated.share = function.share;
  annotated.exits = exits;
  symbolizer::Listing listing =
      ListingOf(PlacesOf(source, profile, function, exits), options, annotated);
  annotated.cautions.emplace_back(
      "a sample's address is where the CPU stopped: a few instructions after the counted one, "
      "often after one that waited");
  report::CodeBlock& block = annotated.blocks.emplace_back();
  block.title = std::move(listing.title);
  block.lines.reserve(listing.lines.size());
  for (symbolizer::ListedLine& line : listing.lines) {
    report::CodeLine& row = block.lines.emplace_back();
    row.place = std::move(line.place);
    row.code = std::move(line.code);
    row.samples = Sum(line.samples);
    if (!exits.empty()) row.by_exit = std::move(line.samples);
    for (symbolizer::ListedLine::Inlined& inlined : line.inlined) {
      row.inlined.push_back({std::move(inlined.function), Sum(inlined.samples)});
    }
  }
  return annotated;
}

}  // namespace xenoscope::cli
