#include "cli/symbol_config.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/spelling.h"
#include "cli/options.h"

namespace xenoscope::cli {
namespace {

constexpr const char* kHostConfig = "/etc/xenoscope.conf";
constexpr const char* kName = "xenoscope.conf";

absl::Status Take(const ConfigItem& item, SymbolOptions& options) {
  static constexpr std::string_view kKeys[] = {"kernel",   "image", "guest",
                                               "xen-syms", "symfs", "debuginfod"};
  const std::string value = item.values.empty() ? std::string() : item.values.front();
  if (std::ranges::find(kKeys, item.name) == std::end(kKeys)) {
    return InvalidError("there is no option {}{}", item.name, SpellingHint(item.name, kKeys));
  }
  if (!item.sections.empty() || item.values.size() != 1 || value.empty()) {
    return InvalidError("expected {} = \"VALUE\"", item.name);
  }
  if (item.name == "kernel") options.kernels.push_back(value);
  if (item.name == "image") options.images.push_back(value);
  if (item.name == "guest") options.guests.push_back(value);
  if (item.name == "xen-syms") options.xen.push_back(value);
  if (item.name == "symfs") options.symfs = value;
  if (item.name == "debuginfod") options.debuginfod = value;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SymbolOptions> ReadSymbolConfig(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseSymbolConfig(AsText(file.bytes()), path);
}

absl::StatusOr<SymbolOptions> ParseSymbolConfig(std::string_view text, const std::string& path) {
  std::istringstream lines{std::string(text)};
  SymbolOptions options;
  options.directory = std::filesystem::absolute(path).parent_path();
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string where = fmt::format("{}:{}", path, number);
    if (const size_t first = line.find_first_not_of(" \t\r");
        first == std::string::npos || line[first] == '#') {
      continue;
    }
    std::vector<ConfigItem> items;
    if (line.find('=') != std::string::npos) items = ReadConfigLine(line);
    if (items.empty()) return InvalidError("{}: expected OPTION = \"VALUE\"", where);
    for (const ConfigItem& item : items) {
      if (const absl::Status status = Take(item, options); !status.ok()) {
        return InContext(status, where);
      }
    }
  }
  return options;
}

std::vector<std::string> SymbolConfigFiles() {
  std::vector<std::string> files;
  // NOLINTBEGIN(concurrency-mt-unsafe): nobody changes the environment
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  // NOLINTEND(concurrency-mt-unsafe)
  if (config != nullptr && *config == '/') {
    files.push_back(fmt::format("{}/{}", config, kName));
  } else if (home != nullptr && *home == '/') {
    files.push_back(fmt::format("{}/.config/{}", home, kName));
  }
  files.emplace_back(kHostConfig);
  std::error_code ignored;
  std::erase_if(files, [&ignored](const std::string& path) {
    return !std::filesystem::exists(path, ignored);
  });
  return files;
}

}  // namespace xenoscope::cli
