// The sums of a slice as one value of a database. Rows of their own would take four times the
// space, and reading them ten times the time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "store/byte_planes.h"
#include "store/packed_keys.h"
#include "store/slice.h"
#include "store/store.h"

namespace xenoscope::store {

// Appends the sums, whose keys are the writer's. Sums of tables that are not kExact are rounded to
// 24 significant bits. Errors: those of the writer. O(sums log(sums)).
absl::Status PackTables(const SliceSums& sums, KeyWriter& keys, PlaneWriter& out);
// Returns them as a value.
absl::StatusOr<std::string> Pack(const SliceSums& sums, KeyWriter& keys);

// Reads what PackTables has written. Its memory is used again for each slice.
class Unpacker {
 public:
  // Reads the sums that are wanted into `sums`, and leaves no others there. Errors
  // (InvalidArgument): the bytes are something else. O(sums).
  absl::Status Read(PlaneReader& in, KeyReader& keys, const WantedSums& wanted, SliceSums& sums);
  // The same of a value of Pack.
  absl::Status Read(Bytes packed, KeyReader& keys, const WantedSums& wanted, SliceSums& sums);

 private:
  PlaneReader planes_;
  std::vector<uint32_t> ids_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<uint64_t> numbers_;

  template <typename Value>
  std::vector<Value>& ColumnOf();
  template <typename Sums>
  absl::Status ReadTable(PlaneReader& in, KeyReader& keys, const WantedSums& wanted,
                         std::vector<Sums>& rows);
};

}  // namespace xenoscope::store
