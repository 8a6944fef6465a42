// `xenoscope top` of a store: the newest slices of its hosts, again and again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/store_source.h"
#include "cli/top_source.h"
#include "report/profile/profile_view.h"
#include "report/profile/top_view.h"

namespace xenoscope::cli {

struct TopOfStoreOptions {
  StoreOptions store;
  int64_t window_ns = 0;  // slices that began in this time before now, where none is said
  std::string by;
  std::string domain;  // empty: all
};

class TopOfStore final : public TopSource {
 public:
  explicit TopOfStore(TopOfStoreOptions options);

  // Errors: those of store::OpenStore and Store::Read. That there is no slice, or no such domain,
  // is none once the store was there: they may come.
  absl::Status Update() override;
  // Whether times were said that are over.
  [[nodiscard]] bool over() const override { return is_read_ && has_end_; }
  [[nodiscard]] int updates_before() const override { return 0; }
  absl::StatusOr<std::string> Text(const report::TextStyle& style, size_t rows) override;
  void NextDomain() override;

 private:
  // Reads the profile and the traces of the slices, and sets what a frame shows.
  absl::Status Read();

  TopOfStoreOptions options_;
  bool has_begin_;
  bool has_end_;
  bool is_read_ = false;
  std::string nothing_;  // why there is no frame; else empty
  report::ProfileReport profile_;
  report::TopFrame frame_;
  std::vector<std::string> known_domains_;
};

}  // namespace xenoscope::cli
