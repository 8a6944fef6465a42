// Numbers texts, from 0 on, in the order in which they first come: for formats that keep a table of
// texts, and for rows that are found by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace xenoscope {

class StringInterner {
 public:
  // Returns the text's number. O(length) on the average; allocates only for a text that is new.
  uint32_t Intern(std::string_view text) {
    const absl::string_view key(text.data(), text.size());
    if (const auto found = index_.find(key); found != index_.end()) return found->second;
    const auto number = static_cast<uint32_t>(all_.size());
    index_.emplace(text, number);
    all_.emplace_back(text);
    return number;
  }

  // All texts, by number.
  const std::vector<std::string>& all() const { return all_; }

 private:
  std::vector<std::string> all_;
  absl::flat_hash_map<std::string, uint32_t> index_;
};

}  // namespace xenoscope
