// How a Linux kernel lays out its trace buffers and its events: the text that tracefs has in
// events/header_page and in events/SYSTEM/EVENT/format. Offsets differ from kernel to kernel, so
// nothing here is known in advance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace xenoscope::guests {

// The head of a sub-buffer: the time of its first event, the number of bytes that follow, and
// those. Offsets and sizes are in bytes.
struct PageLayout {
  uint32_t commit_offset = 8;
  uint32_t commit_size = 8;  // 4 in kernels of 32 bits
  uint32_t data_offset = 16;
  uint32_t data_size = 4080;

  [[nodiscard]] uint32_t PageSize() const { return data_offset + data_size; }
};

// A field of an event: bytes [offset, offset + size) of it.
struct EventField {
  std::string name;
  uint32_t offset = 0;
  uint32_t size = 0;
  bool is_signed = false;
  bool is_array = false;    // several values, such as the characters of a name
  bool is_dynamic = false;  // __data_loc: 2 bytes with the offset of the value, 2 with its size
};

struct EventFormat {
  std::string system;  // "sched"
  std::string name;    // "sched_switch"
  uint16_t id = 0;     // number that its events begin with
  std::string text;    // as the kernel has it
  std::vector<EventField> fields;

  // Returns the field of that name, or null.
  [[nodiscard]] const EventField* Find(std::string_view field) const;
};

struct Formats {
  PageLayout page;
  std::vector<EventFormat> events;
};

// Limits of what one guest may describe.
inline constexpr size_t kMaxFormats = 4096;
inline constexpr size_t kMaxFields = 128;             // of one event
inline constexpr uint32_t kMaxPageSize = 1U << 20;    // the kernel's own limit is 64 pages
inline constexpr size_t kMaxFormatsBytes = 8U << 20;  // of the text

// Parses the text of all formats. Each part begins with a line "# header_page" or "# SYSTEM/EVENT"
// and goes on as tracefs has it; other parts are skipped. An event that is there twice has its last
// format. Errors (InvalidArgument): the text is beyond a limit, a field lies outside of every
// event, a part has no ID; O(bytes of the text).
absl::StatusOr<Formats> ParseFormats(std::string_view text);

}  // namespace xenoscope::guests
