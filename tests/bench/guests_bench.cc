// What it costs to read and decode the events of a guest's kernel: real pages of Linux 6.1.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "guests/ftrace/formats.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/ftrace/page_reader.h"
#include "recording/plain_file.h"

namespace xenoscope::guests {
namespace {

std::string Content(const std::string& name) {
  const auto plain = recording::PlainFile::Open(std::string(XENOSCOPE_TEST_DATA "/ftrace/") + name);
  const auto file = plain.ok() ? MappedFile::Open(plain->path()) : plain.status();
  if (!file.ok()) {
    fmt::print(stderr, "{}\n", std::string(file.status().message()));
    std::exit(1);
  }
  return std::string(AsText(file->bytes()));
}

void DecodeEvents(benchmark::State& state) {
  const Formats formats = ParseFormats(Content("formats")).value();
  const EventDecoder decoder = EventDecoder::Create(formats).value();
  const std::string pages = Content("cpu1.pages");
  const size_t size = formats.page.PageSize();
  int64_t events = 0;
  for ([[maybe_unused]] const auto _ : state) {
    for (size_t at = 0; at + size <= pages.size(); at += size) {
      PageReader reader(AsBytes(pages).subspan(at, size), formats.page);
      KernelEvent event;
      for (RawEvent raw; reader.Next(raw);) {
        bool malformed = false;
        events += decoder.Decode(raw, event, malformed) ? 1 : 0;
        benchmark::DoNotOptimize(event);
      }
    }
  }
  state.SetItemsProcessed(events);
}
BENCHMARK(DecodeEvents);

}  // namespace
}  // namespace xenoscope::guests
