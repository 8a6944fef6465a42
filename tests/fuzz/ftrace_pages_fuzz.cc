// Fuzzes what a guest sends of its kernel's trace: the formats of events, and a page. There is no
// crash, no hang, no read outside of the page, and its bytes add up. Bytes 0..1 are the size of the
// formats, which follow; the rest is the page.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "guests/ftrace/formats.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/ftrace/page_reader.h"

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
  return 0;
}
