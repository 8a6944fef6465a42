#include "cli/push_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "store/bounded_text.h"
#include "store/late_names.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf/build_id.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/image_file.h"
#include "symbolizer/symbol_index.h"

namespace xenoscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 100'000;  // of a directory
constexpr size_t kMostReasons = 5;

// Returns the functions by their places in the file, in ascending order. Of those that overlap, the
// one that begins first ends where the next one begins.
std::vector<store::ImageFunction> FunctionsOf(const symbolizer::ImageFile& image,
                                              const symbolizer::SymbolIndex& index) {
  std::vector<store::ImageFunction> functions;
  functions.reserve(index.size());
  for (uint32_t symbol = 0; symbol < index.size(); ++symbol) {
    const std::optional<uint64_t> begin = image.OffsetOf(index.Start(symbol));
    if (!begin || index.End(symbol) <= index.Start(symbol)) continue;
    std::string name = store::BoundedName(symbolizer::Demangled(index.Name(symbol)));
    if (name.empty()) continue;
    functions.push_back(
        {*begin, *begin + (index.End(symbol) - index.Start(symbol)), std::move(name)});
  }
  std::ranges::stable_sort(functions, {}, &store::ImageFunction::begin);
  const auto at_one_place = [](const store::ImageFunction& a, const store::ImageFunction& b) {
    return a.begin == b.begin;
  };
  functions.erase(std::unique(functions.begin(), functions.end(), at_one_place), functions.end());
  for (size_t i = 0; i + 1 < functions.size(); ++i) {
    functions[i].end = std::min(functions[i].end, functions[i + 1].begin);
  }
  return functions;
}

absl::Status PushFile(const std::string& path, store::Store& to) {
  XENOSCOPE_ASSIGN_OR_RETURN(symbolizer::FileContent content, symbolizer::FileContent::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<symbolizer::ImageFile> image,
      symbolizer::ImageFile::Open(std::move(content), path, symbolizer::FileFinder("/")));
  std::string id = image->elf().BuildId();
  if (id.empty()) id = symbolizer::ContentIdOf(image->content());
  XENOSCOPE_ASSIGN_OR_RETURN(const symbolizer::ElfSymbols symbols,
                             image->ReadSymbols(fs::path(path).filename().string()));
  XENOSCOPE_ASSIGN_OR_RETURN(const symbolizer::SymbolIndex index,
                             symbolizer::SymbolIndex::Build(symbols.table));
  const std::vector<store::ImageFunction> functions = FunctionsOf(*image, index);
  if (functions.empty()) {
    return NotFoundError(
        "it has functions, but not their code: give the program itself; its debug file is found "
        "beside it or in /usr/lib/debug");
  }
  return to.PutFunctions(id, functions);
}

// Returns the regular files below a directory, links not followed.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, fs::directory_options::skip_permission_denied,
                                           error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code of_entry;
    if (!at->is_regular_file(of_entry) || at->is_symlink(of_entry)) continue;
    if (files.size() == kMaxFiles) {
      return ExhaustedError("{}: there are more than {} files; give directories below it",
                            directory, kMaxFiles);
    }
    files.push_back(at->path().string());
  }
  if (error) return NotFoundError("{}: cannot be read: {}", directory, error.message());
  std::ranges::sort(files);
  return files;
}

}  // namespace

absl::StatusOr<PushedSymbols> PushSymbols(const std::vector<std::string>& paths, store::Store& to) {
  PushedSymbols pushed;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      const absl::Status status = PushFile(path, to);
      if (!status.ok()) return InContext(status, path);
      ++pushed.files;
      continue;
    }
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesBelow(path));
    for (const std::string& file : files) {
      const absl::Status status = PushFile(file, to);
      if (status.ok()) {
        ++pushed.files;
        continue;
      }
      if (absl::IsResourceExhausted(status) || absl::IsPermissionDenied(status)) return status;
      ++pushed.others;
      if (pushed.left_out.size() < kMostReasons) {
        pushed.left_out.push_back(fmt::format("{}: {}", file, Message(status)));
      }
    }
  }
  return pushed;
}

}  // namespace xenoscope::cli
