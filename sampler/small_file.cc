#include "sampler/small_file.h"

#include <fstream>

namespace xenoscope::sampler {

std::optional<std::string> ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(size_t{64} * 1024, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  text.erase(text.find_last_not_of(" \t\n\r\f\v") + 1);
  return text;
}

}  // namespace xenoscope::sampler
