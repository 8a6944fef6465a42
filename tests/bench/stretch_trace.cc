// Makes a long trace from a short one: stretch_trace IN OUT MEGABYTES
// Repeats the windows of IN with their times moved on, so that each copy begins where the one
// before ended, until OUT has that many megabytes (10^6 bytes). Records are otherwise unchanged.
// Prints how many copies there are, and how many cycles apart.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "trace/events.h"
#include "trace/record.h"
#include "trace/trace_file.h"

namespace xenoscope::trace {
namespace {

struct Span {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
};

// Calls use(TSC) for every 64-bit time in the window's records, to read or to change it.
template <typename Use>
void ForEachTime(std::byte* at, const std::byte* end, Use use) {
  while (end - at >= 4) {
    const trace::FirstWord word{LoadUnchecked<uint32_t>(at)};
    if (end - at < static_cast<ptrdiff_t>(word.SizeBytes())) return;
    if (word.has_tsc() && word.id() != IdOf(Event::kTraceWrapBuffer)) use(at + 4);
    if (word.id() == IdOf(Event::kLostRecords) && word.SizeBytes() == 28) use(at + 20);
    at += word.SizeBytes();
  }
}

int Stretch(const char* in, const char* out, uint64_t bytes) {
  const auto file = TraceFile::Open(in);
  if (!file.ok()) {
    fmt::print(stderr, "stretch_trace: {}\n", Message(file.status()));
    return 1;
  }
  // All windows in the order of the file: (offset of its records, length).
  std::vector<Window> windows;
  for (const auto& pcpu : file->index().pcpus) {
    windows.insert(windows.end(), pcpu.windows.begin(), pcpu.windows.end());
  }
  std::sort(windows.begin(), windows.end(),
            [](const Window& a, const Window& b) { return a.begin < b.begin; });
  std::vector<std::byte> copy(file->bytes().begin(), file->bytes().end());
  Span span;
  for (const Window& window : windows) {
    ForEachTime(copy.data() + window.begin, copy.data() + window.end, [&](const std::byte* at) {
      const auto tsc = LoadUnchecked<uint64_t>(at);
      span.first = std::min(span.first, tsc);
      span.last = std::max(span.last, tsc);
    });
  }
  std::FILE* to = std::fopen(out, "wb");
  if (to == nullptr) {
    std::perror(out);
    return 1;
  }
  const uint64_t step = span.last - span.first + 1;
  uint64_t copies = 0;
  for (uint64_t written = 0; written < bytes; ++copies) {
    for (const Window& window : windows) {
      const std::byte* header = copy.data() + window.begin - kWindowHeaderBytes;
      const uint64_t size = window.end - window.begin + kWindowHeaderBytes;
      if (std::fwrite(header, 1, size, to) != size) {
        std::perror(out);
        return 1;
      }
      written += size;
      ForEachTime(copy.data() + window.begin, copy.data() + window.end, [&](std::byte* at) {
        const uint64_t tsc = LoadUnchecked<uint64_t>(at) + step;
        std::memcpy(at, &tsc, sizeof tsc);
      });
    }
  }
  fmt::print("{} {}\n", copies, step);
  return std::fclose(to) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace xenoscope::trace

int main(int argc, char** argv) {
  uint64_t megabytes = 0;
  const std::string_view size = argc == 4 ? argv[3] : "";
  const auto [rest, error] = std::from_chars(size.data(), size.data() + size.size(), megabytes);
  if (argc != 4 || error != std::errc() || rest != size.data() + size.size()) {
    fmt::print(
        stderr,
        "usage: stretch_trace IN OUT MEGABYTES\nexample: stretch_trace trace.bin long.bin 600\n");
    return 2;
  }
  return xenoscope::trace::Stretch(argv[1], argv[2], megabytes * 1'000'000);
}
