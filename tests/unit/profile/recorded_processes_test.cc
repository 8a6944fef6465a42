// The processes of a recording: which memory one had when.
#include "profile/recorded_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_recording.h"
#include "symbolizer/process_images.h"

namespace xenoscope::profile {
namespace {

using ::testing::HasSubstr;

std::string NameAt(const RecordedProcesses& processes, uint32_t pid, uint64_t when) {
  return processes.NameOf(processes.SpaceOf(kD1, pid, Tsc{when}));
}

TEST(RecordedProcessesTest, ForkHasNameOfParentUntilExec) {
  FakeRecording made;
  made.Exec(10, 5, "sh");
  made.Fork(20, 6, /*parent=*/5);
  made.Exec(30, 6, "ls");
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(NameAt(*processes, 6, 25), "sh (6)");
  EXPECT_EQ(NameAt(*processes, 6, 30), "ls (6)");
  EXPECT_EQ(NameAt(*processes, 5, 30), "sh (5)");
  EXPECT_EQ(processes->invalid(), 0U);
}

TEST(RecordedProcessesTest, FirstRecordAppliesToEarlierSamples) {
  FakeRecording made;
  made.Exec(100, 5, "sh");
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(NameAt(*processes, 5, 1), "sh (5)");
}

TEST(RecordedProcessesTest, ProcessWithoutRecordIsUnknown) {
  FakeRecording made;
  made.Exec(100, 5, "sh");
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(processes->SpaceOf(kD1, 99, Tsc{100}), AddressSpaceId{});
  EXPECT_EQ(processes->SpaceOf(kDom0, 5, Tsc{100}), AddressSpaceId{});
}

TEST(RecordedProcessesTest, EveryDomainHasAnIdleTask) {
  FakeRecording made;
  made.Exec(100, 5, "sh");
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(NameAt(*processes, 0, 100), "[idle] (0)");
}

// A recording that is being made need not have grown.
TEST(RecordedProcessesTest, ReadsNoRecordTwice) {
  FakeRecording made;
  made.Exec(100, 5, "sh");
  const recording::Recording recording = made.Open();
  RecordedProcesses processes;
  ASSERT_TRUE(processes.ReadNew(recording).ok());
  const AddressSpaceId space = processes.SpaceOf(kD1, 5, Tsc{100});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(processes.ReadNew(recording).ok());
  EXPECT_EQ(processes.SpaceOf(kD1, 5, Tsc{100}), space);
}

TEST(RecordedProcessesTest, BehalfEndsWithTheProgram) {
  FakeRecording made;
  made.Exec(10, 5, "qemu", kDom0);
  made.Behalf(10, 5, DomainId{7});
  made.Exec(20, 6, "bash", kDom0);
  made.Exec(30, 5, "sh", kDom0);
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  const auto behalf_at = [&](uint32_t pid, uint64_t when) {
    return processes->BehalfOf(processes->SpaceOf(kDom0, pid, Tsc{when}));
  };
  EXPECT_EQ(behalf_at(5, 15), DomainId{7});
  EXPECT_EQ(behalf_at(5, 30), std::nullopt);
  EXPECT_EQ(behalf_at(6, 25), std::nullopt);
  EXPECT_EQ(processes->BehalfOf(AddressSpaceId{}), std::nullopt);
}

TEST(RecordedProcessesTest, AddressSpacesHaveNumbersOfTheirOwn) {
  FakeRecording made;
  made.Exec(10, 5, "sh");
  made.SpaceMap(5, 0x7f0000001000, 0, {0x11, 0x22});
  made.SpaceMap(5, 0x555500001000, 0, {0xab, 0xcd});
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(NameAt(*processes, 5, 20), "sh (5)");
  const AddressSpaceId space = processes->SpaceOf(kD1, AddressSpaceId{5});
  EXPECT_EQ(processes->NameOf(space), "[build-id abcd] (address space 5)");
  symbolizer::ProcessImages named;
  named.AddSubstitute("abcd", "/tmp/files/server");
  EXPECT_EQ(processes->NameOf(space, &named), "server (address space 5)");
  EXPECT_EQ(processes->SpaceOf(kD1, AddressSpaceId{6}), AddressSpaceId{});
  EXPECT_EQ(processes->SpaceOf(kDom0, AddressSpaceId{5}), AddressSpaceId{});
  EXPECT_EQ(processes->SpaceOf(kD1, AddressSpaceId{}), AddressSpaceId{});
  symbolizer::ProcessImages images;
  processes->ExportTo(images);
  EXPECT_TRUE(images.Knows(space, 0x555500001fff));
  EXPECT_FALSE(images.Knows(space, 0x555500002000)) << "other maps were not found";
  EXPECT_EQ(images.Find(space, 0x555500001000).image, "[build-id abcd]");
  EXPECT_THAT(images.Find(space, 0x555500001000).unresolved, HasSubstr("exe=FILE"));
}

TEST(RecordedProcessesTest, IdOfFileCanFollowItsMaps) {
  FakeRecording made;
  made.Exec(10, 5, "server");
  made.Map(10, 5, 0x1000, "/no/such/server", /*file=*/1);
  made.Map(10, 5, 0x2000, "/no/such/plugin", /*file=*/2);
  made.Exec(20, 6, "server");
  made.Map(20, 6, 0x1000, "/no/such/server", /*file=*/1);
  made.FileId(1, 0xab);
  made.FileId(3, 0xcd);  // of no file
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  symbolizer::ProcessImages images;
  processes->ExportTo(images);
  const auto why_not = [&](uint32_t pid, Address address) {
    return images.Find(processes->SpaceOf(kD1, pid, Tsc{30}), address).unresolved;
  };
  EXPECT_THAT(why_not(5, 0x1000), HasSubstr("No such file"));
  EXPECT_THAT(why_not(6, 0x1000), HasSubstr("No such file"));
  EXPECT_THAT(why_not(5, 0x2000), HasSubstr("has no build-id and could not be read"));
  EXPECT_EQ(processes->invalid(), 0U);
}

// As of a source that says it after another one has said what the process ran later.
TEST(RecordedProcessesTest, BehalfIsOfTheProgramAtItsTime) {
  FakeRecording made;
  made.Exec(10, 5, "qemu", kDom0);
  made.Exec(30, 5, "sh", kDom0);
  made.Behalf(20, 5, DomainId{7});
  const auto processes = RecordedProcesses::Read(made.Open());
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(processes->BehalfOf(processes->SpaceOf(kDom0, 5, Tsc{15})), DomainId{7});
  EXPECT_EQ(processes->BehalfOf(processes->SpaceOf(kDom0, 5, Tsc{30})), std::nullopt);
}

TEST(RecordedProcessesTest, ReadNewReadsAppendedRecords) {
  FakeRecording made;
  made.Exec(100, 5, "sh");
  RecordedProcesses processes;
  ASSERT_TRUE(processes.ReadNew(made.Open()).ok());
  const AddressSpaceId before = processes.SpaceOf(kD1, 5, Tsc{100});
  made.Exec(200, 5, "ls");
  ASSERT_TRUE(processes.ReadNew(made.Open()).ok());
  EXPECT_EQ(processes.SpaceOf(kD1, 5, Tsc{150}), before);
  EXPECT_EQ(NameAt(processes, 5, 200), "ls (5)");
}

}  // namespace
}  // namespace xenoscope::profile
