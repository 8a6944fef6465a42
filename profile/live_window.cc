#include "profile/live_window.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>

#include "recording/layout.h"

namespace xenoscope::profile {
namespace {

uint64_t BytesOf(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

// Makes a hole of the bytes before `end`, except of the first page, where a header may be. Does
// nothing where the file system has no holes.
void FreeBegin(const std::string& path, uint64_t end) {
  constexpr uint64_t kHeader = 4096;
  if (end <= kHeader) return;
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kHeader),
            static_cast<off_t>(end - kHeader));
  close(fd);
}

}  // namespace

std::string LiveWindow::Path(std::string_view name) const {
  return path_ + '/' + std::string(name);
}

LiveWindow::Part LiveWindow::Advance(const recording::RecordingInfo& info,
                                     std::chrono::steady_clock::time_point when, Tsc tsc) {
  Mark mark{when, tsc, BytesOf(Path(recording::kTraceFile)), {}};
  for (const recording::SourceInfo& source : info.sources) {
    mark.sample_bytes.push_back(BytesOf(Path(recording::SamplesPath(source.name))));
  }
  // The window ends at the last mark that is old enough.
  const auto end = std::find_if(marks_.rbegin(), marks_.rend(),
                                [&](const Mark& each) { return when - each.when >= lag_; });
  Part part;
  if (end != marks_.rend()) {
    // The last mark that is a window's length before it stays.
    while (marks_.size() > 1 && end->when - marks_[1].when >= length_) marks_.pop_front();
    const Mark& first = marks_.front();
    part = {{first.tsc, end->tsc}, first.trace_bytes, LiveWindow::kAll, first.sample_bytes};
    // The trace up to then is written when the next mark is made.
    if (end != marks_.rbegin()) part.trace_end = std::prev(end)->trace_bytes;
  }
  marks_.push_back(std::move(mark));
  return part;
}

void LiveWindow::PunchHoles(const recording::RecordingInfo& info, const Part& part) const {
  FreeBegin(Path(recording::kTraceFile), part.trace_begin);
  for (size_t i = 0; i < part.samples_begin.size() && i < info.sources.size(); ++i) {
    FreeBegin(Path(recording::SamplesPath(info.sources[i].name)), part.samples_begin[i]);
  }
}

}  // namespace xenoscope::profile
