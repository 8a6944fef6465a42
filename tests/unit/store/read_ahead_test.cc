// Slices are read on a thread, and visited on another one.
#include "store/read_ahead.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace xenoscope::store {
namespace {

// Gives slices to a sink, each with a key that is new and one that is not. Counts them in `read`.
absl::Status ReadSlices(int count, const ReadAhead::Sink& sink, int& read) {
  Dictionary dictionary;
  Slice slice;
  for (; read < count; ++read) {
    slice.head.host = std::to_string(read);
    slice.sums.parts.clear();
    const VcpuNumber vcpu = dictionary.vcpus.Intern({"web", 0});
    const CodeNumber code =
        dictionary.codes.Intern({Mode::kUser, "image", "function" + std::to_string(read)});
    slice.sums.parts.push_back({vcpu, dictionary.contexts.Intern({}), code, {}, 0});
    XENOSCOPE_RETURN_IF_ERROR(sink(slice, dictionary));
  }
  return absl::OkStatus();
}

TEST(ReadAheadTest, VisitsSlicesInOrderWithTheirKeys) {
  int read = 0;
  int visited = 0;
  const absl::Status status = ReadAhead().Run(
      [&](const ReadAhead::Sink& sink) { return ReadSlices(100, sink, read); },
      [&](const Slice& slice, const Dictionary& dictionary) {
        const PartSums& part = slice.sums.parts.at(0);
        EXPECT_EQ(slice.head.host, std::to_string(visited));
        EXPECT_EQ(dictionary.codes[part.code].function, "function" + std::to_string(visited));
        EXPECT_EQ(dictionary.vcpus[part.vcpu].domain, "web");
        ++visited;
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(visited, 100);
}

TEST(ReadAheadTest, EndsAtTheFirstErrorOfAVisit) {
  int read = 0;
  const absl::Status status =
      ReadAhead().Run([&](const ReadAhead::Sink& sink) { return ReadSlices(1000, sink, read); },
                      [&](const Slice& slice, const Dictionary&) {
                        return slice.head.host == "10" ? InternalError("enough") : absl::OkStatus();
                      });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_LT(read, 30);
}

TEST(ReadAheadTest, VisitsWhatWasReadBeforeAnError) {
  int read = 0;
  int visited = 0;
  const absl::Status status = ReadAhead().Run(
      [&](const ReadAhead::Sink& sink) -> absl::Status {
        XENOSCOPE_RETURN_IF_ERROR(ReadSlices(3, sink, read));
        return InternalError("damaged");
      },
      [&](const Slice&, const Dictionary&) {
        ++visited;
        return absl::OkStatus();
      });
  EXPECT_EQ(status.message(), "damaged");
  EXPECT_EQ(visited, 3);
}

}  // namespace
}  // namespace xenoscope::store
