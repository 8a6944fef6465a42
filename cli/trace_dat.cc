#include "cli/trace_dat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "report/export/trace_dat_kernel.h"
#include "report/export/trace_dat_xen.h"
#include "symbolizer/symbol_index.h"
#include "symbolizer/text/text_symbols.h"
#include "trace/probe.h"

namespace xenoscope::cli {
namespace {

constexpr const char* kXenFile = "xen.dat";

// Returns the name of the domain's file: a guest's name may be no name of a file.
std::string FileOf(DomainId domain, const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  };
  constexpr size_t kLongest = 64;
  const bool is_name = !name.empty() && name.size() <= kLongest && name[0] != '-' &&
                       std::ranges::all_of(name, is_plain) && name + ".dat" != kXenFile;
  return is_name ? name + ".dat" : fmt::format("d{}.dat", domain.value);
}

// A guest wrote its names.
bool IsWord(std::string_view name) {
  constexpr size_t kLongest = 512;  // KSYM_NAME_LEN
  return name.size() < kLongest && std::ranges::all_of(name, absl::ascii_isgraph);
}

// Returns the functions of the domain's kernel, with the names that reports have for them, as lines
// of /proc/kallsyms. Errors: the recording has none that can be read.
absl::StatusOr<std::string> KallsymsOf(const recording::Recording& recording, DomainId domain) {
  using recording::SymbolFile;
  const SymbolFile* const file = recording.info().Symbols(SymbolFile::Kind::kKallsyms, domain);
  if (file == nullptr) return NotFoundError("the recording has no symbols of its kernel");
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::PlainFile plain, recording.OpenSymbols(*file));
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile text, MappedFile::Open(plain.path()));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto table, symbolizer::ReadKallsyms(AsText(text.bytes())));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto index, symbolizer::SymbolIndex::Build(table));
  std::string lines;
  for (uint32_t i = 0; i < index.size(); ++i) {
    const std::string& image = index.Image(i);
    if (!IsWord(index.Name(i)) || !IsWord(image)) continue;
    lines += fmt::format("{:016x} t {}", index.Start(i), index.Name(i));
    if (image != symbolizer::kKernelImage) lines += fmt::format("\t{}", image);
    lines += '\n';
  }
  return lines;
}

}  // namespace

absl::Status ExportTraceDat(const std::string& directory, const recording::Recording& recording,
                            const profile::TraceInput* input, const KernelTraces& kernels,
                            std::span<const guests::ThreadStates> domains, Clock clock) {
  const recording::RecordingInfo& info = recording.info();
  std::error_code error;
  if (!std::filesystem::create_directory(directory, error)) {
    if (error) return ErrnoError(error.value(), "cannot make the directory {}", directory);
    return PreconditionError("{} exists: choose another directory with -o", directory);
  }
  Tsc zero = info.started;
  if (input != nullptr) zero = trace::ProbeTrace(input->trace).first_tsc.value_or(zero);
  for (const guests::ThreadStates& domain : domains) {
    if (domain.events() > 0) zero = std::min(zero, domain.vcpus().front().window.begin);
  }
  const report::TraceDatOptions options{.clock = clock, .zero = zero};
  std::map<DomainId, uint32_t> guests;
  std::string guests_files;
  for (size_t i = 0; i < domains.size(); ++i) {
    const DomainId domain = domains[i].domain();
    std::string path = fmt::format("{}/{}", directory, FileOf(domain, info.NameOf(domain)));
    if (std::filesystem::exists(path, error))
      path = fmt::format("{}/d{}.dat", directory, domain.value);
    const absl::StatusOr<std::string> kallsyms = KallsymsOf(recording, domain);
    if (!kallsyms.ok()) {
      fmt::print(stderr, "xenoscope: {}: functions of the kernel have no names: {}\n", path,
                 Message(kallsyms.status()));
    }
    XENOSCOPE_ASSIGN_OR_RETURN(
        const uint64_t left_out,
        report::WriteKernelTraceDat(path, kernels.traces[i], kernels.clocks[i].Events(), domains[i],
                                    kallsyms.ok() ? *kallsyms : "", options));
    if (left_out > 0) {
      fmt::print(stderr, "xenoscope: {}: {} events that are longer than a page are left out\n",
                 path, left_out);
    }
    guests[domain] = static_cast<uint32_t>(domains[i].vcpus().size());
    guests_files += fmt::format(" {} {}", input != nullptr ? "-a" : "", path);
  }
  std::string host;
  if (input != nullptr) {
    host = fmt::format(" {}/{}", directory, kXenFile);
    const auto name_of = [&info](DomainId domain) { return info.NameOf(domain); };
    XENOSCOPE_RETURN_IF_ERROR(report::WriteXenTraceDat(
        host.substr(1), input->trace, profile::CompleteDialect(input->dialect, input->trace).vendor,
        name_of, guests, options));
  }
  fmt::print(stderr, "xenoscope: open it with: kernelshark{}{}\n", host, guests_files);
  return absl::OkStatus();
}

}  // namespace xenoscope::cli
