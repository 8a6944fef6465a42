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

// A domain of the type with so many samples, of which so many chains came.
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

TEST(ChainNotes, NameDomainsOfWhichNoCallerCameAndWhy) {
  EXPECT_THAT(ChainNotes(With(DomainType::kPvh, 1649, 1649, 0)),
              ElementsAre(AllOf(HasSubstr("1649 samples of web have no callers"),
                                HasSubstr("PV domains only"), HasSubstr("--source vcpu -g"))));
  EXPECT_THAT(ChainNotes(With(DomainType::kPv, 200, 200, 0)), ElementsAre(HasSubstr("keeps none")));
}

TEST(ChainNotes, SayNothingWhereThereIsNothingToSay) {
  EXPECT_THAT(ChainNotes(With(DomainType::kPv, 200, 200, 7)), IsEmpty());  // some came
  EXPECT_THAT(ChainNotes(With(DomainType::kPvh, 1649, 0, 0)), IsEmpty());  // none asked for
  EXPECT_THAT(ChainNotes(With(DomainType::kPvh, 12, 12, 0)), IsEmpty());   // too few to tell
}

}  // namespace
}  // namespace xenoscope::report
