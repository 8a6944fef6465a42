// JSON documents as text.
#pragma once

#include <string>

namespace xenoscope {

// Returns the text of a document (nlohmann::basic_json), on one line or indented by so many
// blanks. Names come from guests: bytes that are not UTF-8 are replaced by U+FFFD, where
// nlohmann's own default throws.
template <typename Json>
[[nodiscard]] std::string JsonText(const Json& document, int indent = -1) {
  return document.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace xenoscope
