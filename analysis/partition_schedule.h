// Which steps of a trace each partition counts. A thread whose partition has ended takes the later
// part of what another one has not begun, so that all threads end at about the same time, although
// some parts of a trace take longer than others, and some processors are slower.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace xenoscope::analysis {

// May be used by several threads. A partition is named by its first step.
class PartitionSchedule {
 public:
  // Steps [0, steps) are divided into partitions that begin at `starts`, ascending, the first at 0.
  PartitionSchedule(size_t steps, const std::vector<size_t>& starts);

  // Returns the next step of the partition; nullopt at its end. O(log partitions).
  std::optional<size_t> TakeStep(size_t partition);
  // Divides the partition with most steps left, whose later part becomes a new partition, which
  // this returns; nullopt if none has enough. O(partitions).
  std::optional<size_t> Split();

 private:
  struct Rest {
    size_t next;  // the step to take next
    size_t end;
  };

  std::mutex mutex_;
  size_t steps_;
  std::map<size_t, Rest> rests_;  // by partition
};

}  // namespace xenoscope::analysis
