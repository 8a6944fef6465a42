// A page of a kernel's trace by the times of its events, which tests make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/unit/guests/ftrace/page_builder.h"

namespace xenoscope::guests {

// Times ascend, from that of the page on.
class TimedPage {
 public:
  explicit TimedPage(uint64_t tsc) : page_(tsc), tsc_(tsc) {}

  // Returns the data of an event, whose first fields all events have.
  static std::vector<std::byte> Data(uint16_t id, uint32_t thread, size_t size) {
    std::vector<std::byte> data(size);
    Put(data, 0, id);
    Put(data, 4, thread);
    return data;
  }
  template <typename Number>
  static void Put(std::vector<std::byte>& data, size_t at, Number value) {
    std::memcpy(data.data() + at, &value, sizeof value);
  }
  // Puts a text at `at`, and where it is at `place`.
  static void PutText(std::vector<std::byte>& data, size_t place, uint32_t at,
                      std::string_view text) {
    Put(data, place, static_cast<uint32_t>(at | (text.size() + 1) << 16));
    std::memcpy(data.data() + at, text.data(), text.size());
  }

  void Add(uint64_t at, const std::vector<std::byte>& data) { page_.Event(Delta(at), data); }
  // Returns the page, for an event that it can make by itself, and the time until then.
  PageBuilder& page() { return page_; }
  uint32_t Delta(uint64_t at) {
    const auto delta = static_cast<uint32_t>(at - tsc_);
    tsc_ = at;
    return delta;
  }
  [[nodiscard]] std::vector<std::byte> Page(bool is_lossy = false) const {
    return page_.Page(is_lossy);
  }

 private:
  PageBuilder page_;
  uint64_t tsc_;
};

}  // namespace xenoscope::guests
