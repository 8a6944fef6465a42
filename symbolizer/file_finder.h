// Where the files are that name the code of a machine: below a root, which nothing that a guest
// chose, neither links nor "..", leads out of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "symbolizer/debug_server.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

struct AltLink;

class FileFinder {
 public:
  struct Found {
    FileContent content;
    std::string path;  // as below the root
  };

  // `root` holds the files of the machine that was recorded: "/" for this one, or where its disk
  // is mounted or was copied to. Debug files named by their
  // build-ids are looked for below the root, then on this machine.
  // `images`, unless empty, is a directory of files named by their build-ids, as an archived
  // recording has them.
  // `server`, unless null, is asked for what is found nowhere.
  explicit FileFinder(std::string root = "/", std::string images = "",
                      std::shared_ptr<DebugServer> server = nullptr);

  // A file by its path on the machine. Absolute links lead below the root (Linux 5.6's openat2; an
  // older one opens nothing below a root). Errors name the path.
  absl::StatusOr<FileContent> Open(const std::string& path) const;

  // The file of this build-id among the images.
  absl::StatusOr<FileContent> OpenImage(const std::string& build_id) const;

  // The program of this build-id, from the server. Error: there is none, or it has none.
  absl::StatusOr<FileContent> FetchProgram(const std::string& build_id) const;

  // The debug file of `elf`, which was at `path`: by its build-id among the images, as
  // BUILD-ID.debug, and in /usr/lib/debug/.build-id, or
  // as .gnu_debuglink names it, beside it, in .debug/ there, and in /usr/lib/debug; or
  // the server's. Error: there is none, or only those of other builds.
  absl::StatusOr<Found> DebugFileOf(const ElfFile& elf, const std::string& path) const;

  // The file that dwz made for several files, one of which was at `path`: by its build-id as above,
  // or by its name, which may be relative to that file. Error: not there, or of another build.
  absl::StatusOr<Found> AltFileOf(const AltLink& link, const std::string& path) const;

  const std::string& root() const { return root_; }

 private:
  absl::StatusOr<Found> OpenDebug(const std::string& path, const std::string& build_id) const;

  absl::StatusOr<Found> FetchDebug(const std::string& build_id) const;
  absl::StatusOr<Found> DebugFileHere(const ElfFile& elf, const std::string& path) const;
  absl::StatusOr<Found> AltFileHere(const AltLink& link, const std::string& path) const;

  std::string root_;
  std::string images_;
  std::shared_ptr<DebugServer> server_;
};

// The file's name and CRC-32 in .gnu_debuglink; the name is empty where there is none, or where it
// is more than a name.
struct DebugLink {
  std::string name;
  uint32_t crc = 0;
};
DebugLink DebugLinkOf(const ElfFile& elf);

// What .gnu_debugaltlink, or DWARF 5's .debug_sup, says; empty where there is none.
struct AltLink {
  std::string name;
  std::string build_id;  // hexadecimal
};
AltLink AltLinkOf(const ElfFile& elf);

}  // namespace xenoscope::symbolizer
