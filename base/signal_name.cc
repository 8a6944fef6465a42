#include "base/signal_name.h"

#include <fmt/format.h>

#include <cstring>

namespace xenoscope {

std::string SignalName(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

}  // namespace xenoscope
