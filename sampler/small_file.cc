#include "sampler/small_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"

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

std::optional<std::string_view> FieldOf(std::string_view text, std::string_view key) {
  std::optional<std::string_view> field;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) field = line.substr(key.size());
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return field;
}

absl::Status WriteSmallFile(const std::string& path, std::string_view text, mode_t mode) {
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  const int error = file.is_open() ? WriteAll(file.fd(), AsBytes(text)) : errno;
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "cannot write {}", path);
}

}  // namespace xenoscope::sampler
