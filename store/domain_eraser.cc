#include "store/domain_eraser.h"

#include "base/error.h"
#include "store/counters.h"
#include "store/tables.h"

namespace xenoscope::store {

absl::StatusOr<DomainEraser> DomainEraser::Make(std::string domain,
                                                const std::vector<std::string>& kept,
                                                NextName next_name) {
  DomainEraser eraser(std::move(domain), std::move(next_name));
  XENOSCOPE_ASSIGN_OR_RETURN(eraser.new_domain_, eraser.next_name_());
  eraser.new_names_[""] = "";
  for (const std::string& name : kept) eraser.new_names_[name] = name;
  return eraser;
}

absl::StatusOr<std::string> DomainEraser::NewName(const std::string& name) {
  const auto known = new_names_.find(name);
  if (known != new_names_.end()) return known->second;
  XENOSCOPE_ASSIGN_OR_RETURN(std::string text, next_name_());
  return new_names_[name] = std::move(text);
}

template <typename Sums>
absl::Status DomainEraser::EraseRow(Sums& row, Dictionary& dictionary) {
  row.vcpu = dictionary.vcpus.Intern({new_domain_, dictionary.vcpus[row.vcpu].number});
  if constexpr (requires { row.code; }) {
    CodeKey code = dictionary.codes[row.code];
    XENOSCOPE_ASSIGN_OR_RETURN(code.image, NewName(code.image));
    XENOSCOPE_ASSIGN_OR_RETURN(code.function, NewName(code.function));
    row.code = dictionary.codes.Intern(code);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DomainEraser::EraseVcpus(SliceSums& sums, Dictionary& dictionary) {
  bool found = false;
  const absl::Status erased = ForEachTable([&]<typename Sums>() {
    if constexpr (requires(Sums row) { row.vcpu; }) {
      for (Sums& row : sums.*Table<Sums>::kRows) {
        if (row.vcpu == kAllVcpus || dictionary.vcpus[row.vcpu].domain != domain_) continue;
        found = true;
        XENOSCOPE_RETURN_IF_ERROR(EraseRow(row, dictionary));
      }
    }
    return absl::OkStatus();
  });
  if (!erased.ok()) return erased;
  return found;
}

absl::StatusOr<bool> DomainEraser::Erase(SliceSums& sums, Dictionary& dictionary) {
  XENOSCOPE_ASSIGN_OR_RETURN(bool found, EraseVcpus(sums, dictionary));
  for (TraceSums& row : sums.trace) {
    if (row.other != domain_) continue;
    found = true;
    row.other = new_domain_;
  }
  if (!found) return false;
  for (Counter& counter : sums.counters) {
    if (!counter.name.starts_with(kUnresolvedCounter) ||
        counter.name.find(domain_) == std::string::npos) {
      continue;
    }
    XENOSCOPE_ASSIGN_OR_RETURN(const std::string name, NewName(counter.name));
    counter.name = std::string(kUnresolvedCounter) + name;
  }
  return true;
}

}  // namespace xenoscope::store
