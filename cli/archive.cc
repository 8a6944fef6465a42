// xenoscope archive, unpack: a recording with the files that name its samples, to be read
// elsewhere.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/profile_source.h"
#include "cli/recorded_processes.h"
#include "cli/recorded_samples.h"
#include "recording/archive.h"
#include "recording/recording.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

using recording::Recording;

struct ArchiveOptions {
  ProfileRequest profile;
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

absl::Status RunArchive(const ArchiveOptions& options) {
  if (!Recording::IsRecording(options.profile.input)) {
    return NotFoundError("{}: it is no recording", options.profile.input);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  const Recording& recording = *source.recording();
  // What all samples of all events lie in is what a report may ask for.
  for (size_t event = 0; event < recording.info().events.size(); ++event) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        RecordedSamples samples,
        RecordedSamples::Open(recording, {.event = static_cast<uint16_t>(event)},
                              &source.processes()));
    while (const auto sample = samples.Next()) {
      const auto resolve = [&](Address address) {
        source.symbols().ResolveInProcess(sample->vcpu.domain, sample->space, address);
      };
      if (sample->mode == Mode::kUser) resolve(sample->address);
      for (size_t i = 0; i < sample->callers.size(); ++i) resolve(sample->callers.at(i));
    }
  }
  std::vector<recording::AddedFile> added;
  for (const symbolizer::UsedFile& file : source.symbols().processes().UsedFiles()) {
    added.push_back(
        {fmt::format("{}/{}", symbolizer::kImagesInRecording, file.name), file.content});
  }
  const std::string output =
      options.output.empty() ? BaseName(options.profile.input) + ".xeno.tar.zst" : options.output;
  const size_t files = added.size();
  XENOSCOPE_RETURN_IF_ERROR(recording::PackRecording(options.profile.input, added, output));
  fmt::print(stderr, "xenoscope: {}: with {} files of programs and their symbols\n", output, files);
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

void AddArchive(CLI::App& app, Run& run) {
  auto options = std::make_shared<ArchiveOptions>();
  CLI::App* command = app.add_subcommand(
      "archive", "One file of a recording and of the programs that name its samples");
  command->add_option("RECORDING", options->profile.input, "what `xenoscope record` wrote")
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "the file; default: NAME.xeno.tar.zst here");
  AddSymbolOptions(*command, options->profile.symbols);
  command->footer(
      "Example:\n"
      "  xenoscope archive web.xeno -o web.xeno.tar.zst\n"
      "  xenoscope unpack web.xeno.tar.zst && xenoscope report web.xeno   # on any machine");
  command->callback([&run, options] { run = [options] { return RunArchive(*options); }; });
}

void AddUnpack(CLI::App& app, Run& run) {
  auto options = std::make_shared<UnpackOptions>();
  CLI::App* command = app.add_subcommand("unpack", "The recording in what `archive` wrote");
  command->add_option("FILE", options->input, "NAME.xeno.tar.zst")->required();
  command->add_option("-o,--output", options->output,
                      "the directory, which is made; default: NAME.xeno here");
  command->footer(
      "Example:\n"
      "  xenoscope unpack web.xeno.tar.zst");
  command->callback([&run, options] { run = [options] { return RunUnpack(*options); }; });
}

}  // namespace xenoscope::cli
