// Takes what is known of a domain out of slices.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "store/slice.h"

namespace xenoscope::store {

// Renames what slices have of a domain: other names, one for one, so that no two rows become one
// and all sums stay as they are.
class DomainEraser {
 public:
  // Returns names that say nothing, which nothing has yet: "(removed 17)".
  using NextName = std::function<absl::StatusOr<std::string>()>;

  // Names of `kept`, which are those of Xen's code, stay. Errors: those of `next_name`.
  static absl::StatusOr<DomainEraser> Make(std::string domain, const std::vector<std::string>& kept,
                                           NextName next_name);

  // Changes the sums, whose keys are in the dictionary. Returns whether they have the domain.
  // O(sums).
  absl::StatusOr<bool> Erase(SliceSums& sums, Dictionary& dictionary);

 private:
  DomainEraser(std::string domain, NextName next_name)
      : domain_(std::move(domain)), next_name_(std::move(next_name)) {}
  absl::StatusOr<std::string> NewName(const std::string& name);
  // Erases the domain from rows of vCPUs. Returns whether there are such rows.
  absl::StatusOr<bool> EraseVcpus(SliceSums& sums, Dictionary& dictionary);
  template <typename Sums>
  absl::Status EraseRow(Sums& row, Dictionary& dictionary);

  std::string domain_;
  std::string new_domain_;
  NextName next_name_;
  absl::flat_hash_map<std::string, std::string> new_names_;
};

}  // namespace xenoscope::store
