// xenoscope archive, unpack: a recording with the files that name its samples, to be read
// elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/profile_source.h"
#include "cli/symbol_options.h"
#include "profile/recorded_samples.h"
#include "recording/archive.h"
#include "recording/recording.h"
#include "report/terminal.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/trimmed_file.h"
#include "symbolizer/file_content.h"

namespace xenoscope::cli {
namespace {

using recording::Recording;

struct ArchiveOptions {
  ProfileOptions profile;
  std::string output;
};

struct UnpackOptions {
  std::string input;
  std::string output;
};

// "a/b.xeno/" is of the recording b.
std::string BaseName(const std::string& path) {
  std::filesystem::path name(path);
  if (name.filename().empty()) name = name.parent_path();
  return name.stem().string();
}

// The path in a recording's directory at which a reader looks for this source; empty: none.
std::string NameInRecording(const symbolizer::SymbolSource& source, DomainId domain,
                            const symbolizer::FileContent& content) {
  const bool is_elf = symbolizer::IsElf(content.bytes());
  const std::string file = std::filesystem::path(source.path).filename().string();
  switch (source.kind) {
    case symbolizer::SourceKind::kXen:
      if (symbolizer::IsOfLivepatches(content.bytes())) {
        return fmt::format("symbols/livepatches/{}", symbolizer::WithoutCompression(file));
      }
      return is_elf ? "symbols/xen-syms" : "symbols/xensyms";
    case symbolizer::SourceKind::kKernel:
      return fmt::format("guests/{}/{}", domain.value, is_elf ? "vmlinux" : "kallsyms");
    case symbolizer::SourceKind::kModules:
      return fmt::format("guests/{}/modules", domain.value);
    case symbolizer::SourceKind::kModuleFile:
    case symbolizer::SourceKind::kVdso:
    case symbolizer::SourceKind::kPerfMaps:
      break;  // AddNamed does not come with them
    case symbolizer::SourceKind::kImage:
      return fmt::format("guests/{}/images/{}", domain.value, symbolizer::WithoutCompression(file));
  }
  return {};
}

// Adds the files that the user named, so that the archive needs no options to be read. What was
// recorded stays as it is.
absl::Status AddNamed(const ArchiveOptions& options, const Recording& recording,
                      std::deque<symbolizer::FileContent>& contents,
                      std::vector<recording::AddedFile>& added) {
  XENOSCOPE_ASSIGN_OR_RETURN(const symbolizer::SymbolSources named,
                             NamedSources(options.profile.symbols, &recording.info()));
  std::set<std::string> names;
  for (const symbolizer::SymbolSource& source : named.sources) {
    // Those through which chains go are added with those that were found.
    if (source.kind == symbolizer::SourceKind::kModuleFile) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(symbolizer::FileContent file,
                               symbolizer::FileContent::Open(source.path));
    const symbolizer::FileContent& content = contents.emplace_back(std::move(file));
    std::vector<DomainId> domains = {source.domain};
    if (source.domain == symbolizer::kEveryDomain) {
      domains.clear();
      for (const auto& domain : recording.info().domains) domains.push_back(domain.id);
    }
    for (const DomainId domain : domains) {
      const std::string name = NameInRecording(source, domain, content);
      const std::string recorded = fmt::format("{}/{}", recording.path(), name);
      std::error_code ignored;
      if (std::filesystem::exists(recorded, ignored) ||
          std::filesystem::exists(recorded + ".zst", ignored)) {
        fmt::print(stderr, "xenoscope: {}: not archived, because the recording has its own {}\n",
                   source.path, name);
      } else if (names.insert(name).second) {  // of several the first is the one that counts
        added.push_back({name, content.bytes()});
      }
    }
  }
  return absl::OkStatus();
}

// Adds the file's tables for unwinding to what is kept of it.
void KeepUnwindTables(Bytes file, std::vector<Bytes>& kept) {
  const auto elf = symbolizer::ElfFile::Open(file);
  if (!elf.ok()) return;
  for (const char* const name : {".eh_frame", ".debug_frame"}) {
    if (const Bytes section = elf->Section(name); !section.empty()) kept.push_back(section);
  }
}

// Adds the files of kernels' modules that have samples, or through which call chains were unwound.
// Of their code `code` is kept.
void AddModules(const symbolizer::KernelModules& modules, const std::vector<Bytes>& code,
                std::deque<std::vector<std::byte>>& trimmed,
                std::vector<recording::AddedFile>& added) {
  std::set<std::string> names;  // domains may share a debug file
  for (const auto& [domain, file, debug, build_id] : modules.UsedFiles()) {
    std::vector<Bytes> kept = file->LoadedParts();
    kept.insert(kept.end(), code.begin(), code.end());
    added.push_back({fmt::format("guests/{}/{}/{}.ko", domain.value,
                                 symbolizer::kModulesInRecording, file->name()),
                     trimmed.emplace_back(symbolizer::TrimmedFile(file->content(), kept))});
    std::string name = fmt::format("{}/{}.debug", symbolizer::kImagesInRecording, build_id);
    if (debug == nullptr || build_id.empty() || !names.insert(name).second) continue;
    added.push_back(
        {std::move(name), trimmed.emplace_back(symbolizer::TrimmedFile(debug->bytes(), {}))});
  }
}

absl::Status RunArchive(ArchiveOptions options) {
  if (!Recording::IsRecording(options.profile.input)) {
    return NotFoundError("{}: not a recording; name a directory of `xenoscope record`",
                         options.profile.input);
  }
  options.profile.symbols.no_cache = true;  // the files themselves are wanted
  options.profile.call_chains = true;
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  const Recording& recording = *source.recording();
  std::vector<symbolizer::CodeFrame> frames;
  std::set<std::pair<const std::byte*, size_t>> listed;  // the code of functions
  // A report may ask for the code of every sample of every event.
  for (size_t event = 0; event < recording.info().events.size(); ++event) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        profile::RecordedSamples samples,
        profile::RecordedSamples::Open(recording, {.events = {static_cast<uint16_t>(event)}},
                                       &source.processes()));
    while (const recording::Sample* sample = samples.Next()) {
      const auto resolve = [&](Mode mode, Address address) {
        // Its lines, too: they may be in further files.
        const auto place =
            source.symbols().LocationOf(sample->vcpu.domain, mode, sample->space, address);
        if (!place || place->file == nullptr) return;
        const Bytes code =
            place->file->CodeAt(place->function_begin, place->function_end - place->function_begin);
        listed.emplace(code.data(), code.size());
        if (place->file->debug_info() == nullptr) return;
        place->file->debug_info()->FramesAt(place->address, frames);
      };
      if (sample->mode != Mode::kXen) resolve(sample->mode, sample->address);
      for (size_t i = 0; i < sample->callers.size(); ++i) {
        if (sample->callers.ModeAt(i) != Mode::kXen) {
          resolve(sample->callers.ModeAt(i), sample->callers.at(i));
        }
      }
    }
  }
  std::vector<recording::AddedFile> added;
  std::vector<Bytes> code;
  code.reserve(listed.size());
  for (const auto& [begin, size] : listed) code.emplace_back(begin, size);
  std::deque<std::vector<std::byte>> trimmed;
  const bool with_stacks =
      std::ranges::any_of(recording.info().sources,
                          [](const recording::SourceInfo& of) { return of.stacks.has_value(); });
  for (const symbolizer::UsedFile& file : source.symbols().processes().UsedFiles()) {
    if (with_stacks) KeepUnwindTables(file.content, code);
    added.push_back({fmt::format("{}/{}", symbolizer::kImagesInRecording, file.name),
                     trimmed.emplace_back(symbolizer::TrimmedFile(file.content, code))});
  }
  AddModules(source.symbols().modules(), code, trimmed, added);
  std::deque<symbolizer::FileContent> contents;
  XENOSCOPE_RETURN_IF_ERROR(AddNamed(options, recording, contents, added));
  const std::string output =
      options.output.empty() ? BaseName(options.profile.input) + ".xeno.tar.zst" : options.output;
  const size_t files = added.size();
  XENOSCOPE_RETURN_IF_ERROR(recording::PackRecording(options.profile.input, added, output));
  fmt::print(stderr, "xenoscope: {}: contains {} files of programs and symbols\n", output, files);
  return absl::OkStatus();
}

absl::Status RunUnpack(const UnpackOptions& options) {
  std::string output = options.output;
  if (output.empty()) {
    output = std::filesystem::path(options.input).filename().string();
    for (const char* suffix : {".zst", ".tar"}) {
      if (output.ends_with(suffix)) output.resize(output.size() - 4);
    }
    if (output == options.input) output += ".xeno";
  }
  return recording::UnpackRecording(options.input, output);
}

}  // namespace

void AddArchive(Command program, CommandAction& run) {
  auto options = std::make_shared<ArchiveOptions>();
  Command command =
      program.AddSubcommand("archive", "Write a recording and its symbol files to one archive");
  command.AddOption("RECORDING", options->profile.input, "Recording of `xenoscope record`")
      .ShowDefault();
  command.AddOption("-o,--output", options->output,
                    "Archive to write; default: NAME.xeno.tar.zst in the current directory");
  AddSymbolOptions(command, options->profile.symbols);
  command.SetFooter(
      "Example:\n"
      "  xenoscope archive web.xeno -o web.xeno.tar.zst\n"
      "  xenoscope unpack web.xeno.tar.zst && xenoscope report web.xeno   # on any machine");
  command.SetCallback([&run, options] { run = [options] { return RunArchive(*options); }; });
}

void AddUnpack(Command program, CommandAction& run) {
  auto options = std::make_shared<UnpackOptions>();
  Command command = program.AddSubcommand("unpack", "Unpack an archive of `xenoscope archive`");
  command.AddOption("FILE", options->input, "NAME.xeno.tar.zst").Required();
  command.AddOption("-o,--output", options->output,
                    "Directory to make; default: NAME.xeno in the current directory");
  command.SetFooter(
      "Example:\n"
      "  xenoscope unpack web.xeno.tar.zst");
  command.SetCallback([&run, options] { run = [options] { return RunUnpack(*options); }; });
}

}  // namespace xenoscope::cli
