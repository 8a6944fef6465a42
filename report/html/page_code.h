// The code of the page's functions, each line with its samples by VM exit. Its size is bounded.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "report/profile/annotate_view.h"

namespace xenoscope::report {

class PageCode {
 public:
  // Of long functions only the lines near samples are kept, so many on both sides.
  static constexpr size_t kLongFunction = 400;
  static constexpr size_t kNear = 10;
  // No function is added after so many bytes of code, or so many functions.
  static constexpr size_t kMaxBytes = 400'000;
  static constexpr size_t kMaxFunctions = 200;

  // Whether there is room for more.
  [[nodiscard]] bool HasRoom() const {
    return bytes_ < kMaxBytes && functions_.size() < kMaxFunctions;
  }
  // Adds the function, in the domain of this name. One without code is not added. O(lines).
  void Add(const std::string& domain, const AnnotatedFunction& function);
  // Returns the page's list, in the order of Add (docs/schemas/page.schema.json).
  [[nodiscard]] const nlohmann::ordered_json& ToJson() const { return functions_; }

 private:
  nlohmann::ordered_json functions_ = nlohmann::ordered_json::array();
  size_t bytes_ = 0;
};

}  // namespace xenoscope::report
