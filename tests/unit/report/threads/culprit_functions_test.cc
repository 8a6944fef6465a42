#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "report/table/table_csv.h"
#include "report/threads/threads_view.h"
#include "tests/unit/guests/recorded_kernel.h"

namespace xenoscope::report {
namespace {

using guests::RecordedKernel;

struct CulpritFunctionCase {
  const char* what;
  ThreadsBy by;
  const char* label;  // of the function
  const char* cells;  // of the function's columns, in the row of web that waits for db
};

// web is woken at 450, and runs from 500 on: db ran in between.
TEST(CulpritsTable, HasTheFunctionOfTheCulprit) {
  const CulpritFunctionCase cases[] = {
      {"of the thread", ThreadsBy::kThread, "db (8)", "sort,0.5,0.25,0.75"},
      {"of another thread", ThreadsBy::kThread, "web (7)", ",,,"},
      {"of all of the domain", ThreadsBy::kThread, "", ",,,"},
      {"of the domain", ThreadsBy::kDomain, "", "sort,0.5,0.25,0.75"},
  };
  for (const CulpritFunctionCase& each : cases) {
    RecordedKernel kernel(DomainId{1});
    std::vector<guests::ThreadStates> domains;
    domains.emplace_back(RecordShop(kernel).Open(), guests::EventClock::Fixed(0));
    ASSERT_TRUE(guests::FollowThreads(domains, /*xen=*/nullptr).ok());
    const HotFunctions functions{{{{}, DomainId{1}, each.label}, {"sort", 0.5, 0.25, 0.75}}};
    const auto table = CulpritsTable(
        domains, [](DomainId) { return std::string("web1"); }, Clock{1'000'000'000},
        {.by = each.by}, &functions);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_THAT(ToCsv(*table), testing::HasSubstr(std::string(",5e-08,") + each.cells + "\r\n"))
        << each.what;
  }
}

}  // namespace
}  // namespace xenoscope::report
