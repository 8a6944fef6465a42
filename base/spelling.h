// The known name that a misspelt one was meant to be, for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace xenoscope {

// "; did you mean NAME?", or nothing when no name is near: begins with the word, or is one or two
// letters (a third of them in short words) away. O(sum of the lengths x the word's length).
std::string SpellingHint(std::string_view word, std::span<const std::string_view> names);

}  // namespace xenoscope
