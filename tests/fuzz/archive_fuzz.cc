// Fuzzes archives of recordings. There is no crash and no hang; all that is unpacked is in the
// named directory, and nothing is left of an archive that is refused.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "recording/archive.h"

namespace fs = std::filesystem;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fs::path around =
      fs::temp_directory_path() / ("xenoscope_archive_fuzz." + std::to_string(getpid()));
  const int fd = memfd_create("archive", 0);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  fs::create_directory(around);
  const fs::path directory = around / "unpacked";
  const auto status = xenoscope::recording::UnpackRecording("/proc/self/fd/" + std::to_string(fd),
                                                            directory.string());
  close(fd);
  std::error_code error;
  if (fs::exists(directory, error) != status.ok()) std::abort();
  for (const auto& entry : fs::directory_iterator(around)) {
    if (entry.path() != directory) std::abort();
  }
  for (const auto& entry : fs::recursive_directory_iterator(around)) {
    if (entry.is_symlink() || !(entry.is_directory() || entry.is_regular_file())) std::abort();
  }
  fs::remove_all(around, error);
  return 0;
}
