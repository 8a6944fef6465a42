// Fuzzes what a guest sends of its kernel's trace: the formats of events, and a page. There is no
// crash, no hang, no read outside of the page, its bytes add up, and so do the times of threads.
// Bytes 0..1 are the size of the formats, which follow; the rest is the page.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "guests/ftrace/formats.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/ftrace/kernel_trace.h"
#include "guests/ftrace/page_reader.h"
#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "recording/sample_writer.h"

namespace {

constexpr uint32_t kMaxPage = 1U << 16;

// Follows threads through the page as that of two CPUs, and once more after itself.
void FollowThreads(xenoscope::Bytes formats, xenoscope::Bytes page, uint32_t page_size) {
  using xenoscope::kDom0;
  namespace guests = xenoscope::guests;
  namespace recording = xenoscope::recording;
  std::vector<std::byte> whole(page.begin(), page.end());
  whole.resize(page_size);
  recording::SampleWriter writer = recording::SampleWriter::InMemory();
  writer.AppendTraceFormats(kDom0, xenoscope::AsText(formats));
  for (const uint32_t cpu : {0, 1, 0}) {
    writer.AppendTracePages({kDom0, xenoscope::VcpuId{cpu}}, {}, page_size, whole);
  }
  const recording::FileHeader header;
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> file(head.begin(), head.end());
  const std::vector<std::byte> chunks = writer.Take();
  file.insert(file.end(), chunks.begin(), chunks.end());
  const auto trace = guests::KernelTrace::Open(file, kDom0);
  if (!trace.ok() || !*trace) return;
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(**trace, 0);
  if (!guests::FollowThreads(domains, nullptr).ok()) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xenoscope::Bytes;
  namespace guests = xenoscope::guests;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const size_t length = xenoscope::Load<uint16_t>(bytes, 0).value_or(0);
  const Bytes text = xenoscope::Slice(bytes, 2, length).value_or(Bytes());
  const auto formats = guests::ParseFormats(xenoscope::AsText(text));
  if (!formats.ok()) return 0;
  const auto decoder = guests::EventDecoder::Create(*formats);
  if (!decoder.ok()) return 0;
  const Bytes page = bytes.subspan(bytes.size() < 2 ? bytes.size() : 2 + text.size());
  guests::PageReader reader(page, formats->page);
  size_t taken = 0;
  guests::KernelEvent event;
  for (guests::RawEvent raw; reader.Next(raw);) {
    taken += raw.data.size() + sizeof(uint32_t);
    bool malformed = false;
    if (!decoder->Decode(raw, event, malformed)) continue;
    for (const std::string_view part : {event.name, event.path}) {
      if (part.size() > raw.data.size()) std::abort();
    }
  }
  if (taken + reader.damaged_bytes() > page.size()) std::abort();
  if (formats->page.PageSize() <= kMaxPage) FollowThreads(text, page, formats->page.PageSize());
  return 0;
}
