// Numbers of pairs.
#include "store/paged_numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace xenoscope::store {
namespace {

TEST(PagedNumbersTest, RemembersTheNumberOfEachPair) {
  PagedNumbers numbers;
  // Both ends of pages, and rows of different lengths.
  const auto columns = {0U, 1U, 63U, 64U, 65U, 127U, 128U, 5000U};
  uint32_t next = 0;
  for (const uint32_t row : {2U, 0U, 7U}) {
    for (const uint32_t column : columns) {
      EXPECT_EQ(numbers.At(row, column), PagedNumbers::kNone);
      numbers.At(row, column) = next++;
    }
  }
  next = 0;
  for (const uint32_t row : {2U, 0U, 7U}) {
    for (const uint32_t column : columns) EXPECT_EQ(numbers.At(row, column), next++);
    EXPECT_EQ(numbers.At(row, 2), PagedNumbers::kNone);
  }
  numbers.Clear();
  for (const uint32_t column : columns) EXPECT_EQ(numbers.At(2, column), PagedNumbers::kNone);
}

}  // namespace
}  // namespace xenoscope::store
