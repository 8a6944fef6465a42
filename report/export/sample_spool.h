// Samples of threads on their way to a file that has them thread by thread, in the order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/mapped_file.h"
#include "base/tsc.h"
#include "recording/temporary_file.h"

namespace xenoscope::report {

// Keeps the samples. Memory: `buffered` of them; the others are in a temporary file, in sorted runs
// of as many, with a number for each thread and run.
class SampleSpool {
 public:
  struct Sample {
    Tsc at;
    uint32_t thread = 0;
    uint32_t stack = 0;
  };
  static constexpr size_t kBuffered = size_t{1} << 20;

  explicit SampleSpool(size_t buffered = kBuffered) : buffered_(buffered) {}

  // Adds a sample. Threads are numbered from 0. Errors (ResourceExhausted): there is no room for
  // the temporary file. O(log(buffered)) amortised.
  absl::Status Add(const Sample& sample);
  // To be called once, after the last sample. Errors: as Add; those of the system.
  absl::Status Finish();

  // The rest is for after Finish.
  // Returns the number of the thread's samples.
  [[nodiscard]] uint64_t CountOf(uint32_t thread) const;
  // Calls visit(sample) for each of the thread's samples in the order of time; those of one instant
  // in the order in which they were added. O(samples log(runs)).
  void ForEach(uint32_t thread, const std::function<void(const Sample&)>& visit) const;

 private:
  // Sorted samples, in the file or in memory.
  struct Run {
    size_t first = 0;                // the first sample's number in the file
    std::vector<uint32_t> begins{};  // by thread: its first sample's number in the run; and the end
  };

  // Sorts the buffer. Returns the run that it is.
  [[nodiscard]] Run SortBuffer();
  [[nodiscard]] const Sample* SamplesOf(const Run& run) const;

  size_t buffered_;
  std::vector<Sample> buffer_;
  uint32_t threads_ = 0;
  size_t in_file_ = 0;
  std::vector<Run> runs_;  // the last one is that of the buffer, after Finish
  std::unique_ptr<recording::TemporaryFile> file_;
  MappedFile mapped_;
};

}  // namespace xenoscope::report
