// The terminal as a screen that is redrawn, and its keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::cli {

// Owns the terminal; there is at most one.
class Screen {
 public:
  // Standard input and output must be a terminal. Errors (NotFound): its kind, $TERM, is not in the
  // terminal database of this machine.
  static absl::StatusOr<std::unique_ptr<Screen>> Open();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  // Restores the terminal.
  ~Screen();

  size_t columns() const;
  size_t rows() const;
  // Shows the text, with `keys` in the last line. Text that does not fit is left out. The first
  // line of `text` and the line after each empty line are titles, in bold.
  void Show(std::string_view text, std::string_view keys);
  // Returns the key that is pressed within `patience`, if there is one.
  std::optional<char> Key(std::chrono::milliseconds max_wait);

 private:
  Screen() = default;
};

}  // namespace xenoscope::cli
