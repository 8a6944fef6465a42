// What `xenoscope top` shows: the last seconds of something that grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/table/table_text.h"

namespace xenoscope::cli {

// The functions of a frame where the output has no end.
inline constexpr size_t kBatchFunctions = 20;

class TopSource {
 public:
  // `groupings` are those that NextGrouping chooses in turn.
  TopSource(std::string by, std::span<const std::string_view> groupings)
      : by_(std::move(by)), groupings_(groupings) {}
  TopSource(const TopSource&) = delete;
  TopSource& operator=(const TopSource&) = delete;
  virtual ~TopSource() = default;

  // Reads what is new. Errors: those of reading.
  virtual absl::Status Update() = 0;
  // Returns whether nothing new will come.
  [[nodiscard]] virtual bool over() const = 0;
  // Returns how many updates come before the first frame.
  [[nodiscard]] virtual int updates_before() const = 0;
  // Returns the text of what Update() read last, of at most `rows` lines; 0: of all.
  virtual absl::StatusOr<std::string> Text(const report::TextStyle& style, size_t rows) = 0;
  // Chooses all domains, then each one in turn.
  virtual void NextDomain() = 0;

  void NextGrouping() {
    const auto at = std::ranges::find(groupings_, by_);
    const bool is_last = at == groupings_.end() || at + 1 == groupings_.end();
    by_ = is_last ? groupings_.front() : at[1];
  }

 protected:
  [[nodiscard]] const std::string& by() const { return by_; }

 private:
  std::string by_;
  std::span<const std::string_view> groupings_;
};

}  // namespace xenoscope::cli
