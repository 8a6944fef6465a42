#include "guests/threads/numbered_name.h"

#include <fmt/format.h>

namespace xenoscope::guests {

std::string NumberedName(const std::string& name, uint32_t number) {
  return number == 0 ? name : fmt::format("{} ({})", name, number);
}

}  // namespace xenoscope::guests
