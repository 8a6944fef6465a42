// A finder of a machine's files with code and symbols, below a root directory. Nothing that a guest
// chose, neither links nor "..", leads out of the root.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "symbolizer/debug_server.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

struct AltLink;

// The finder.
class FileFinder {
 public:
  struct Found {
    FileContent content;
    std::string path;  // path below the root
  };

  // `root` has the files of the recorded machine: "/" for this machine, or where its disk is
  // mounted or was copied to. Debug files named by their build-ids are looked up below the root,
  // then on this machine. `images`, unless empty, is a directory of files named by their build-ids,
  // as an archived recording has it. `server`, unless null, is asked for files that are found
  // nowhere.
  explicit FileFinder(std::string root = "/", std::string images = "",
                      std::shared_ptr<DebugServer> server = nullptr);

  // Opens a file by its path on the machine. Absolute links lead below the root (openat2 of Linux
  // 5.6; with an older Linux nothing opens below a root). Errors name the path.
  absl::StatusOr<FileContent> Open(const std::string& path) const;

  // Calls for each file below the directory with this path on the machine, with the file's path.
  // Follows no links below that directory, and at most 16 levels and 100,000 names. Error: there is
  // no such directory.
  absl::Status ForEachFile(const std::string& directory,
                           absl::FunctionRef<void(const std::string& path)> use) const;

  // Opens the file of this build-id among the images.
  absl::StatusOr<FileContent> OpenImage(const std::string& build_id) const;

  // Gets the program of this build-id from the server. Error: there is no server, or it has no such
  // file.
  absl::StatusOr<FileContent> FetchProgram(const std::string& build_id) const;

  // Finds the debug file of `elf`, which was at `path`: by build-id among the images
  // (BUILD-ID.debug) and in /usr/lib/debug/.build-id; by the name in .gnu_debuglink in the same
  // directory, in its .debug/, and below /usr/lib/debug; that of a kernel's module by its own path
  // below /usr/lib/debug, with or without ".debug"; or from the server. Error: there is none,
  // or only those of other builds. `id` is the content id of a file that may have no build-id: its
  // debug file among the images is named for that.
  absl::StatusOr<Found> DebugFileOf(const ElfFile& elf, const std::string& path,
                                    const std::string& id = "") const;

  // Finds the file that dwz made for several files, one of which was at `path`: by its build-id as
  // above, or by its name, which may be relative to that file. Error: not there, or of another
  // build.
  absl::StatusOr<Found> AltFileOf(const AltLink& link, const std::string& path) const;

  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  // Opens what has this path below the root, as openat2 does with these flags. Returns a file
  // descriptor, or -1 and errno.
  [[nodiscard]] int OpenBelow(const std::string& path, int flags) const;
  // Opens the debug file of `elf` at `path`. `anywhere`: on this machine if it is not below the
  // root. `by_id`: only if it has the build-id.
  absl::StatusOr<Found> OpenDebug(const ElfFile& elf, const std::string& path, bool by_id,
                                  bool anywhere) const;

  // Finds the debug file of a kernel's module, which is at the module's path below kDebugDirectory.
  absl::StatusOr<Found> DebugFileOfModule(const ElfFile& elf, const std::string& path) const;
  absl::StatusOr<Found> FetchDebug(const std::string& build_id) const;
  absl::StatusOr<Found> DebugFileHere(const ElfFile& elf, const std::string& path,
                                      const std::string& id) const;
  absl::StatusOr<Found> AltFileHere(const AltLink& link, const std::string& path) const;

  std::string root_;
  std::string images_;
  std::shared_ptr<DebugServer> server_;
};

// The content of .gnu_debuglink: a file's name and CRC-32. The name is empty where there is none,
// or where it is not a plain file name.
struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};
DebugLink DebugLinkOf(const ElfFile& elf);

// The content of .gnu_debugaltlink, or of DWARF 5's .debug_sup; empty where there is none.
struct AltLink {
  std::string name;
  std::string build_id;  // build-id, hexadecimal
};
AltLink AltLinkOf(const ElfFile& elf);

}  // namespace xenoscope::symbolizer
