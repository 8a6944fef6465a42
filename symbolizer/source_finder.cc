#include "symbolizer/source_finder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "symbolizer/file_finder.h"

namespace xenoscope::symbolizer {
namespace {

// Suffixes of languages whose compilers write DWARF.
constexpr std::array<std::string_view, 32> kSourceSuffixes = {
    ".c",  ".h",   ".cc", ".cpp", ".cxx",   ".c++", ".C", ".hh",  ".hpp", ".hxx", ".h++",
    ".H",  ".inc", ".in", ".def", ".ipp",   ".tcc", ".S", ".s",   ".asm", ".rs",  ".go",
    ".ml", ".mli", ".d",  ".zig", ".swift", ".f90", ".f", ".pas", ".y",   ".l"};

constexpr int kMaxParts = 64;

}  // namespace

absl::StatusOr<FileContent> SourceFinder::Open(const std::string& path) const {
  const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  const std::string ending = whole.extension().string();
  if (std::find(kSourceSuffixes.begin(), kSourceSuffixes.end(), ending) == kSourceSuffixes.end()) {
    return InvalidError("its source is {}, which is not the name of a source file", path);
  }
  for (const std::string& directory : directories_) {
    const FileFinder finder(directory);
    std::filesystem::path rest = whole.relative_path();
    for (int i = 0; i < kMaxParts && !rest.empty(); ++i) {
      if (auto content = finder.Open("/" + rest.string()); content.ok()) return content;
      if (directory == "/") break;
      std::filesystem::path shorter;
      for (auto part = std::next(rest.begin()); part != rest.end(); ++part) shorter /= *part;
      rest = std::move(shorter);
    }
  }
  return NotFoundError(
      "its source was {} when it was compiled; give the directory of its tree with --source DIR, "
      "or --source / if it is at that path",
      path);
}

}  // namespace xenoscope::symbolizer
