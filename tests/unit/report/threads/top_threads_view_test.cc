#include "report/threads/top_threads_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "guests/threads/follow_threads.h"
#include "report/table/table_csv.h"
#include "tests/unit/guests/recorded_kernel.h"

namespace xenoscope::report {
namespace {

using guests::RecordedKernel;

std::string TableOf(TscRange window, ThreadsBy by) {
  RecordedKernel kernel(DomainId{1});
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(RecordShop(kernel).Open(), guests::EventClock::Fixed(0));
  guests::TimesWithin times(window);
  domains[0].SetObserver(&times);
  EXPECT_TRUE(guests::FollowThreads(domains, /*xen=*/nullptr).ok());
  return ToCsv(TopThreadsTable(
      domains, times, [](DomainId) { return std::string("web1"); }, by));
}

// In [200, 600) web runs until 250 and from 500 on, and is woken in [450, 500); db runs in between.
TEST(TopThreadsTable, TimesArePartsOfTheWindow) {
  EXPECT_EQ(TableOf({Tsc{200}, Tsc{600}}, ThreadsBy::kThread),
            "domain,container,process,pid,thread,tid,cpu,xen,stolen,queued,uninterruptible,lost\r\n"
            "web1,,db,,db,8,0.625,0,0,0,0,0\r\n"
            "web1,shop,web,7,web,7,0.375,0,0,0.125,0,0\r\n");
  EXPECT_EQ(TableOf({Tsc{200}, Tsc{600}}, ThreadsBy::kDomain),
            "domain,cpu,xen,stolen,queued,uninterruptible,lost\r\n"
            "web1,1,0,0,0.125,0,0\r\n");
}

TEST(TopThreadsTable, WhatOnlySleptIsLeftOut) {
  EXPECT_EQ(TableOf({Tsc{300}, Tsc{400}}, ThreadsBy::kThread),
            "domain,container,process,pid,thread,tid,cpu,xen,stolen,queued,uninterruptible,lost\r\n"
            "web1,,db,,db,8,1,0,0,0,0,0\r\n");
}

}  // namespace
}  // namespace xenoscope::report
