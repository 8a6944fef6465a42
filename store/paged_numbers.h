// Numbers of pairs of small numbers, as those of rows and columns of a table most of which is
// empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace xenoscope::store {

class PagedNumbers {
 public:
  // No number is there yet.
  static constexpr uint32_t kNone = ~uint32_t{0};

  // Returns the number of the pair, kNone at first, to be read or set before the next call. It
  // takes two loads: pairs that follow each other in a row are together, in pages of 64. O(1), and
  // O(column / 64) where a row becomes longer.
  uint32_t& At(uint32_t row, uint32_t column) {
    if (row >= rows_.size()) rows_.resize(row + 1);
    std::vector<uint32_t>& pages = rows_[row];
    const uint32_t place = column / kPage;
    if (place >= pages.size()) pages.resize(place + 1, kNone);
    uint32_t& page = pages[place];
    if (page == kNone) {
      page = static_cast<uint32_t>(numbers_.size() / kPage);
      numbers_.resize(numbers_.size() + kPage, kNone);
    }
    return numbers_[size_t{page} * kPage + column % kPage];
  }

  // Forgets all numbers, and keeps the memory. O(numbers).
  void Clear() {
    for (std::vector<uint32_t>& pages : rows_) pages.clear();
    numbers_.clear();
  }

 private:
  static constexpr uint32_t kPage = 64;

  std::vector<std::vector<uint32_t>> rows_;  // the number of each page; kNone: it is empty
  std::vector<uint32_t> numbers_;            // page by page
};

}  // namespace xenoscope::store
