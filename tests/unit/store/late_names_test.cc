// Code whose file was not at hand gets its function when the store has the file's functions.
#include "store/late_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

TEST(LateNamesTest, NamesPlacesByTheFunctionsOfTheirFile) {
  int reads = 0;
  LateNames names([&reads](const std::string& build_id) {
    ++reads;
    std::vector<ImageFunction> functions;
    if (build_id == "8f") functions = {{0x100, 0x120, "main"}, {0x120, 0x200, "serve"}};
    return functions;
  });
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"[8f+0xff]", "[gap]"},
           {"[8f+0x100]", "main"},
           {"[8f+0x11f]", "main"},
           {"[8f+0x120]", "serve"},
           {"[8f+0x200]", "[gap]"},
           {"[90+0x100]", "[no symbols]"},
           {"[90+0x101]", "[no symbols]"},
           {"[no symbols]", "[no symbols]"},
           {"do_sched_op", "do_sched_op"},
           {"", ""},
       }) {
    EXPECT_EQ(names.NameOf(text), expected) << text;
  }
  EXPECT_EQ(reads, 2);  // each file once
  EXPECT_TRUE(names.status().ok());
  EXPECT_TRUE(names.Knows("between the functions of the file 8f"));
  EXPECT_FALSE(names.Knows("no file of the build 90"));
}

TEST(LateNamesTest, GivesTheErrorOfReading) {
  LateNames names([](const std::string&) -> absl::StatusOr<std::vector<ImageFunction>> {
    return InvalidError("no answer");
  });
  EXPECT_EQ(names.NameOf("[8f+0x1]"), "[no symbols]");
  EXPECT_TRUE(absl::IsInvalidArgument(names.status()));
}

// A store may be anyone's.
TEST(LateNamesTest, RefusesFunctionsThatNoFileHas) {
  const std::vector<ImageFunction> good = {{1, 2, "a"}, {2, 3, "b"}};
  EXPECT_TRUE(CheckFunctions("8f", good).ok());
  EXPECT_FALSE(CheckFunctions("", good).ok());
  EXPECT_FALSE(CheckFunctions("'; DROP TABLE", good).ok());
  for (const std::vector<ImageFunction>& functions :
       std::vector<std::vector<ImageFunction>>{{{2, 3, "b"}, {1, 2, "a"}},
                                               {{1, 3, "a"}, {2, 4, "b"}},
                                               {{1, 1, "a"}},
                                               {{2, 1, "a"}},
                                               {{1, ~uint64_t{0}, "a"}},
                                               {{1, 2, ""}},
                                               {{1, 2, "\x1b[31m"}},
                                               {{1, 2, std::string(kMaxName + 1, 'x')}}}) {
    EXPECT_FALSE(CheckFunctions("8f", functions).ok());
    LateNames names([&functions](const std::string&) { return functions; });
    EXPECT_EQ(names.NameOf("[8f+0x1]"), "[no symbols]");
    EXPECT_FALSE(names.status().ok());
  }
}

}  // namespace
}  // namespace xenoscope::store
