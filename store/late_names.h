// Functions of code whose file was not at hand when its slice was pushed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope::store {

// A function of a program's file, whose code is [begin, end) of the file, in bytes.
struct ImageFunction {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;

  bool operator==(const ImageFunction&) const = default;
};

// The most functions of a file.
inline constexpr size_t kMaxImageFunctions = 2'000'000;

// Returns OK if the functions are in ascending order and do not overlap, and their names and the
// file's id are as a store has them. Errors (InvalidArgument): they are not. O(functions).
absl::Status CheckFunctions(const std::string& build_id,
                            const std::vector<ImageFunction>& functions);

class LateNames {
 public:
  // Returns the functions of the file with this build-id or content id; none if the store has none.
  using Read = std::function<absl::StatusOr<std::vector<ImageFunction>>(const std::string&)>;

  explicit LateNames(Read read) : read_(std::move(read)) {}

  // Returns the name of the function at a place (base/code_place.h), "[no symbols]" if the store
  // has no functions of that file, and "[gap]" if none is there. Another name stays as it is.
  // O(log(functions)); reads those of a file once.
  std::string NameOf(const std::string& name);

  // Returns whether the text names a file by its id whose functions were read.
  [[nodiscard]] bool Knows(std::string_view text) const;
  // Returns the first error of reading.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  const std::vector<ImageFunction>& FunctionsOf(const std::string& build_id);

  Read read_;
  absl::flat_hash_map<std::string, std::vector<ImageFunction>> files_;  // by build-id
  absl::flat_hash_map<std::string, std::string> names_;                 // by place
  absl::Status status_;
};

}  // namespace xenoscope::store
