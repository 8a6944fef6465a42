// Text that goes to a sink in blocks while it is written.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"

namespace xenoscope::report {

// Memory: a block, and what is added at once.
class SinkText {
 public:
  // Takes the next bytes of the file.
  using Sink = std::function<absl::Status(std::string_view)>;

  explicit SinkText(Sink sink) : sink_(std::move(sink)) {}

  // Returns the text to add to.
  std::string& text() { return text_; }
  SinkText& operator+=(std::string_view more) {
    text_ += more;
    return *this;
  }
  // To be called after each small piece: passes a full block on. After an error nothing is passed
  // on any more.
  void EndPiece() {
    if (text_.size() >= kBlock) Pass();
  }
  // Passes the rest on. Returns the sink's first error.
  absl::Status Finish() {
    Pass();
    return status_;
  }

 private:
  static constexpr size_t kBlock = size_t{256} << 10;

  void Pass() {
    if (status_.ok()) status_ = sink_(text_);
    text_.clear();
  }

  Sink sink_;
  std::string text_;
  absl::Status status_;
};

}  // namespace xenoscope::report
