// Reads slices on a thread of its own, while those before them are visited.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "store/slice.h"

namespace xenoscope::store {

class ReadAhead {
 public:
  // Takes a slice that was read, and may take its sums: it leaves others, whose memory is used
  // again.
  using Sink = std::function<absl::Status(Slice&, const Dictionary&)>;
  using Visitor = std::function<absl::Status(const Slice&, const Dictionary&)>;

  // Calls `read` on a thread, and `visit` on this one for each slice that it gives to its sink. The
  // dictionary that is visited is a copy of that of `read`, which grows. Returns the first error of
  // `visit`, or that of `read`. O(slices).
  absl::Status Run(const std::function<absl::Status(const Sink&)>& read, const Visitor& visit);

 private:
  // Keys that are new since the slice before.
  struct NewKeys {
    std::vector<VcpuKey> vcpus;
    std::vector<ContextKey> contexts;
    std::vector<CodeKey> codes;
  };
  struct Item {
    Slice slice;
    NewKeys keys;
  };

  // Of the thread that reads. Take returns an error where nobody visits any more.
  absl::Status Take(Slice& slice, const Dictionary& dictionary);
  void End(absl::Status status);
  // Of the thread that visits. Next returns false at the end.
  bool Next(Item& item);
  absl::Status VisitAll(const Visitor& visit);
  void Stop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> ready_;
  std::vector<Slice> free_;  // whose memory is used again
  bool ended_ = false;
  bool stopped_ = false;
  absl::Status read_status_;
  // Of the thread that reads: how many keys it has sent.
  size_t vcpus_ = 0;
  size_t contexts_ = 0;
  size_t codes_ = 0;
};

}  // namespace xenoscope::store
