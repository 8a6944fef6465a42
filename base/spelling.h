// Finds the known name that a misspelt one was meant to be, for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace xenoscope {

// Returns "; did you mean NAME?", or nothing when no name is near. A name is near that begins with
// the word, or is one or two letters away, and at most a third of the word. O(sum of the lengths x
// the word's length).
[[nodiscard]] std::string SpellingHint(std::string_view word,
                                       std::span<const std::string_view> names);

}  // namespace xenoscope
