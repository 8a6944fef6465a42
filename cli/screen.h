// The terminal as a screen that is drawn anew, and its keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::cli {

// Holds the terminal while it lives; only one at a time.
class Screen {
 public:
  // Standard input and output must be a terminal. Errors (NotFound): its kind, $TERM, is not in the
  // terminal database of this machine.
  static absl::StatusOr<std::unique_ptr<Screen>> Open();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  // Gives the terminal back as it was.
  ~Screen();

  size_t columns() const;
  size_t rows() const;
  // Shows the text, with `keys` in the last line. What does not fit is left out. Of `text` the
  // first line and the one after each empty line, which are titles, are bold.
  void Show(std::string_view text, std::string_view keys);
  // The key that is pressed within `patience`.
  std::optional<char> Key(std::chrono::milliseconds max_wait);

 private:
  Screen() = default;
};

}  // namespace xenoscope::cli
