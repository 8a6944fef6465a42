#include "store/late_names.h"

#include <algorithm>
#include <utility>

#include "base/code_place.h"
#include "base/error.h"
#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

constexpr uint64_t kMaxOffset = uint64_t{1} << 62;

}  // namespace

absl::Status CheckFunctions(const std::string& build_id,
                            const std::vector<ImageFunction>& functions) {
  if (!ParseCodePlace(ToString(CodePlace{build_id, 0}))) {
    return InvalidError("'{}' is not the build-id of a file", BoundedName(build_id));
  }
  if (functions.size() > kMaxImageFunctions) {
    return InvalidError("the file with the build-id {} has {} functions; a store takes {}",
                        build_id, functions.size(), kMaxImageFunctions);
  }
  uint64_t end = 0;
  for (const ImageFunction& function : functions) {
    if (function.begin < end || function.end <= function.begin || function.end > kMaxOffset ||
        function.name.empty() || BoundedName(function.name) != function.name) {
      return InvalidError("the store is damaged: the functions of the file {} are not in order",
                          build_id);
    }
    end = function.end;
  }
  return absl::OkStatus();
}

std::string LateNames::NameOf(const std::string& name) {
  if (!name.starts_with('[')) return name;
  const auto [known, is_new] = names_.try_emplace(name, name);
  if (!is_new) return known->second;
  const std::optional<CodePlace> place = ParseCodePlace(name);
  if (!place) return known->second;
  const std::vector<ImageFunction>& functions = FunctionsOf(place->build_id);
  known->second = functions.empty() ? "[no symbols]" : "[gap]";
  const auto after = std::ranges::upper_bound(functions, place->offset, {}, &ImageFunction::begin);
  if (after != functions.begin() && place->offset < std::prev(after)->end) {
    known->second = std::prev(after)->name;
  }
  return known->second;
}

const std::vector<ImageFunction>& LateNames::FunctionsOf(const std::string& build_id) {
  const auto [file, is_new] = files_.try_emplace(build_id);
  if (!is_new || !status_.ok()) return file->second;
  absl::StatusOr<std::vector<ImageFunction>> read = read_(build_id);
  if (read.ok()) status_ = CheckFunctions(build_id, *read);
  if (!read.ok()) status_ = read.status();
  if (status_.ok()) file->second = *std::move(read);
  return file->second;
}

bool LateNames::Knows(std::string_view text) const {
  return std::ranges::any_of(files_, [text](const auto& file) {
    return !file.second.empty() && text.find(file.first) != std::string_view::npos;
  });
}

}  // namespace xenoscope::store
