// Reads the sums of slices that a ClickHouse server has added up.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "store/clickhouse/row_binary.h"
#include "store/store.h"

namespace xenoscope::store {

// The slices of a group have these in common: their sums add up.
struct GroupKey {
  std::string event;
  std::string host;
  bool is_time = false;
  uint64_t clock_hz = 0;
  double period = 0;
  bool traced = false;

  bool operator==(const GroupKey&) const = default;
};

class GroupReader {
 public:
  using Run = std::function<absl::StatusOr<std::string>(std::string_view sql)>;

  // One of the heads of groups, then one of each kind of sums.
  static constexpr size_t kAnswers = 9;

  // Which CrossSums are wanted: those of the columns that are, or all.
  enum class Crosses : uint8_t { kOfColumns, kAll };

  // Asks for the groups of the rows that fulfil the condition, and for each kind of sums
  // that is wanted. Errors are those of `run`.
  static absl::StatusOr<GroupReader> Ask(std::string_view where, const WantedSums& wanted,
                                         Crosses which, const Run& run);
  // For kAnswers answers from elsewhere.
  explicit GroupReader(std::vector<std::string> answers);

  // Reads the next group. Returns false at the end, and where an answer is not good.
  bool Next(Dictionary& dictionary, Slice& slice);
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  // The rows of an answer. The group of the next row is read before the row.
  struct Rows {
    explicit Rows(const std::string& answer) : in(AsBytes(answer)) {}
    RowBinaryReader in;
    GroupKey next;
    bool has_next = false;
  };

  std::vector<std::string> answers_;
  std::vector<Rows> rows_;
  bool ok_ = true;
};

}  // namespace xenoscope::store
