#include "report/profile/dimension_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_split.h"
#include "base/error.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;

struct Name {
  Dimension dimension;
  std::string_view name;
};

constexpr std::array<Name, correlate::kDimensions> kNames = {{
    {Dimension::kDomain, "domain"},       {Dimension::kVcpu, "vcpu"},
    {Dimension::kPcpu, "pcpu"},           {Dimension::kMode, "mode"},
    {Dimension::kExit, "exit"},           {Dimension::kSubreason, "subreason"},
    {Dimension::kWaiting, "waiting"},     {Dimension::kWakeup, "wakeup"},
    {Dimension::kThread, "thread"},       {Dimension::kProcess, "process"},
    {Dimension::kContainer, "container"}, {Dimension::kBehalf, "behalf"},
    {Dimension::kImage, "image"},         {Dimension::kFunction, "function"},
    {Dimension::kLine, "line"},           {Dimension::kAddress, "address"},
    {Dimension::kPage, "page"},           {Dimension::kStack, "stack"},
    {Dimension::kPlacing, "placing"},     {Dimension::kHost, "host"},
}};

}  // namespace

std::string_view ToString(Dimension dimension) {
  return std::ranges::find(kNames, dimension, &Name::dimension)->name;
}

absl::StatusOr<std::vector<Dimension>> ParseDimensions(const std::string& names) {
  std::vector<Dimension> dimensions;
  const std::vector<std::string> words = absl::StrSplit(names, ',');
  for (const std::string& word : words) {
    const auto* const found = std::ranges::find(kNames, word, &Name::name);
    if (found == kNames.end()) {
      return InvalidError("there is no column '{}'; choose from {}", word,
                          fmt::join(DimensionNames(), ","));
    }
    if (std::ranges::find(dimensions, found->dimension) != dimensions.end()) {
      return InvalidError("column '{}' is named twice; name it once", word);
    }
    dimensions.push_back(found->dimension);
  }
  return dimensions;
}

std::vector<std::string> DimensionNames() {
  std::vector<std::string> names;
  names.reserve(kNames.size());
  for (const Name& name : kNames) names.emplace_back(name.name);
  return names;
}

std::vector<std::string> ComparableDimensionNames() {
  std::vector<std::string> names = DimensionNames();
  std::erase(names, ToString(Dimension::kAddress));
  return names;
}

}  // namespace xenoscope::report
