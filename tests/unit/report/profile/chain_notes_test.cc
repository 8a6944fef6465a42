#include "report/profile/chain_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xenoscope::report {
namespace {

using recording::DomainType;
using recording::RecordingInfo;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns a recording of one domain with these numbers of samples, of begun chains, and of chains
// with callers.
RecordingInfo With(DomainType type, uint64_t samples, uint64_t escapes, uint64_t callers) {
  RecordingInfo info;
  recording::DomainInfo domain;
  domain.id = DomainId{3};
  domain.name = "web";
  domain.type = type;
  info.domains.push_back(domain);
  recording::StreamInfo stream;
  stream.source = "xenoprof";
  stream.vcpu.domain = domain.id;
  stream.kept = samples;
  stream.escapes = escapes;
  stream.callers = callers;
  info.streams.push_back(stream);
  return info;
}

TEST(ChainNotes, NameDomainsWithoutCallersAndTheReason) {
  EXPECT_THAT(ChainNotes(With(DomainType::kPvh, 1649, 1649, 0)),
              ElementsAre(AllOf(HasSubstr("1649 samples of web have no callers"),
                                HasSubstr("PV domains only"), HasSubstr("--source vcpu -g"))));
  EXPECT_THAT(ChainNotes(With(DomainType::kPv, 200, 200, 0)), ElementsAre(HasSubstr("keeps none")));
}

// A register that is no frame pointer leads to a caller now and then; where Xen has frame pointers,
// PVH guests have its callers and none of their own.
TEST(ChainNotes, CountTheCallersThatThereAre) {
  EXPECT_THAT(ChainNotes(With(DomainType::kPv, 200, 200, 7)),
              ElementsAre(AllOf(HasSubstr("200 samples of web have only 7 callers: "),
                                HasSubstr("keeps none"))));
  EXPECT_THAT(ChainNotes(With(DomainType::kPvh, 200, 200, 900)),
              ElementsAre(AllOf(HasSubstr("200 samples of web have only 900 callers in Xen: "),
                                HasSubstr("PV domains only"))));
}

TEST(ChainNotes, ShareOneLineByReason) {
  RecordingInfo info = With(DomainType::kPvh, 100, 100, 0);
  for (uint16_t id = 4; id < 6; ++id) {
    recording::DomainInfo domain = info.domains.front();
    domain.id = DomainId{id};
    domain.name += "2";
    info.domains.push_back(domain);
    info.streams.push_back(info.streams.front());
    info.streams.back().vcpu.domain = domain.id;
  }
  info.domains.back().name = "db";
  EXPECT_THAT(ChainNotes(info), ElementsAre(HasSubstr("300 samples of web, web2, db have no")));
  info.domains.push_back(info.domains.front());
  info.domains.back().id = DomainId{6};
  info.streams.push_back(info.streams.front());
  info.streams.back().vcpu.domain = DomainId{6};
  EXPECT_THAT(ChainNotes(info), ElementsAre(HasSubstr("400 samples of 4 domains have no")));
}

TEST(ChainNotes, AreEmptyWhereChainsAreCompleteOrNotRecorded) {
  EXPECT_THAT(ChainNotes(With(DomainType::kPv, 200, 200, 200)), IsEmpty());
  // no chains were asked for
  EXPECT_THAT(ChainNotes(With(DomainType::kPvh, 1649, 0, 0)), IsEmpty());
  // there are too few samples
  EXPECT_THAT(ChainNotes(With(DomainType::kPvh, 12, 12, 0)), IsEmpty());
}

// Records of mapped files are lost with others; which ones, nobody knows.
TEST(UnwindNotes, SayThatRecordsOfFilesMayBeLost) {
  RecordingInfo info;
  recording::SourceInfo& source = info.sources.emplace_back();
  source.name = "perf";
  source.stacks.emplace();
  recording::StreamInfo& stream = info.streams.emplace_back();
  stream.source = "perf";
  profile::UnwindResults results;
  profile::UnwindCounts& counts = results.user;
  counts.chains.at(static_cast<size_t>(ChainEnd::kOutermost)) = 7;
  counts.chains.at(static_cast<size_t>(ChainEnd::kNoTable)) = 3;
  EXPECT_THAT(UnwindNotes(info, results), ElementsAre(HasSubstr("7 of 10 call chains")));
  stream.logged.lost = 12;
  EXPECT_THAT(UnwindNotes(info, results),
              ElementsAre(HasSubstr("7 of 10"), HasSubstr("12 records of sources with stacks")));
  counts.chains.at(static_cast<size_t>(ChainEnd::kNoTable)) = 0;
  EXPECT_THAT(UnwindNotes(info, results), ElementsAre(HasSubstr("7 of 7")));
}

TEST(UnwindNotes, SayOfEachKernelHowItsChainsEnd) {
  recording::RecordingInfo info;
  info.domains.emplace_back().id = DomainId{3};
  info.domains.back().name = "web";
  profile::UnwindResults results;
  profile::UnwindCounts& counts = results.kernels[DomainId{3}].by_orc;
  counts.chains[static_cast<size_t>(ChainEnd::kOutermost)] = 90;
  counts.chains[static_cast<size_t>(ChainEnd::kNoTable)] = 7;
  counts.chains[static_cast<size_t>(ChainEnd::kBadRule)] = 3;
  EXPECT_THAT(UnwindNotes(info, results),
              ElementsAre(AllOf(
                  HasSubstr("90 of 100 call chains in the kernel of web were unwound by its ORC"),
                  HasSubstr("7 end at code without ORC"), HasSubstr("3 end because"))));
}

TEST(UnwindNotes, SayWhichModulesHaveNoOrc) {
  profile::UnwindResults results;
  profile::KernelUnwindCounts& kernel = results.kernels[DomainId{3}];
  kernel.by_orc.chains[static_cast<size_t>(ChainEnd::kNoTable)] = 7;
  kernel.modules_without_orc = {"a: no file", "b: no file", "c: no file", "d: no file",
                                "e: no file"};
  EXPECT_THAT(UnwindNotes({}, results),
              ElementsAre(AllOf(HasSubstr("7 end at code without ORC: that of modules (a: no file; "
                                          "b: no file; c: no file; and 2 more)"),
                                HasSubstr("d3:module=FILE"))));
}

TEST(UnwindNotes, SayHowChainsOfGuestsProgramsEnd) {
  profile::UnwindResults results;
  results.guest_programs.chains[static_cast<size_t>(ChainEnd::kOutermost)] = 5;
  results.guest_programs.chains[static_cast<size_t>(ChainEnd::kNoTable)] = 2;
  results.guest_programs.chains[static_cast<size_t>(ChainEnd::kBadRule)] = 1;
  EXPECT_THAT(UnwindNotes({}, results),
              ElementsAre(AllOf(HasSubstr("5 of 8 call chains in guests' programs"),
                                HasSubstr("2 end at code"), HasSubstr("--guest DOMAIN:exe=FILE"),
                                HasSubstr("1 end because"))));
}

TEST(UnwindNotes, SayWhyAKernelHasNoOrc) {
  recording::RecordingInfo info;
  profile::UnwindResults results;
  results.kernels[DomainId{3}] = {
      .by_frame_pointers = 12, .why_no_orc = "vmlinux has no ORC", .modules_without_orc = {}};
  EXPECT_THAT(
      UnwindNotes(info, results),
      ElementsAre(AllOf(HasSubstr("12 call chains in the kernel of d3"),
                        HasSubstr("because vmlinux has no ORC"), HasSubstr("--guest d3:kernel="))));
}

}  // namespace
}  // namespace xenoscope::report
