#include "report/export/sample_spool.h"

#include <algorithm>
#include <queue>
#include <span>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace xenoscope::report {

// The file has them as they are in memory.
static_assert(std::is_trivially_copyable_v<SampleSpool::Sample>);

absl::Status SampleSpool::Add(const Sample& sample) {
  threads_ = std::max(threads_, sample.thread + 1);
  buffer_.push_back(sample);
  if (buffer_.size() < buffered_) return absl::OkStatus();
  if (file_ == nullptr) {
    XENOSCOPE_ASSIGN_OR_RETURN(recording::TemporaryFile file, recording::TemporaryFile::Create());
    file_ = std::make_unique<recording::TemporaryFile>(std::move(file));
  }
  runs_.push_back(SortBuffer());
  XENOSCOPE_RETURN_IF_ERROR(file_->Write(std::as_bytes(std::span(buffer_))));
  in_file_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status SampleSpool::Finish() {
  runs_.push_back(SortBuffer());
  if (file_ == nullptr) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(mapped_, MappedFile::Open(file_->path()));
  return absl::OkStatus();
}

SampleSpool::Run SampleSpool::SortBuffer() {
  std::ranges::stable_sort(
      buffer_, {}, [](const Sample& sample) { return std::pair(sample.thread, sample.at); });
  Run run{.first = in_file_};
  uint32_t number = 0;
  for (uint32_t thread = 0; thread <= threads_; ++thread) {
    while (number < buffer_.size() && buffer_[number].thread < thread) ++number;
    run.begins.push_back(number);
  }
  return run;
}

const SampleSpool::Sample* SampleSpool::SamplesOf(const Run& run) const {
  if (run.first == in_file_) return buffer_.data();
  return reinterpret_cast<const Sample*>(mapped_.bytes().data()) + run.first;
}

uint64_t SampleSpool::CountOf(uint32_t thread) const {
  uint64_t count = 0;
  for (const Run& run : runs_) {
    if (thread + 1 < run.begins.size()) count += run.begins[thread + 1] - run.begins[thread];
  }
  return count;
}

void SampleSpool::ForEach(uint32_t thread, const std::function<void(const Sample&)>& visit) const {
  struct Next {
    const Sample* sample = nullptr;
    const Sample* end = nullptr;
    size_t run = 0;
  };
  // Samples of one instant come by run.
  const auto later = [](const Next& a, const Next& b) {
    return std::pair(a.sample->at, a.run) > std::pair(b.sample->at, b.run);
  };
  std::priority_queue<Next, std::vector<Next>, decltype(later)> heap(later);
  for (size_t number = 0; number < runs_.size(); ++number) {
    const Run& run = runs_[number];
    if (thread + 1 >= run.begins.size()) continue;
    const Sample* const samples = SamplesOf(run);
    const Next next{samples + run.begins[thread], samples + run.begins[thread + 1], number};
    if (next.sample != next.end) heap.push(next);
  }
  while (!heap.empty()) {
    Next next = heap.top();
    heap.pop();
    visit(*next.sample);
    if (++next.sample != next.end) heap.push(next);
  }
}

}  // namespace xenoscope::report
