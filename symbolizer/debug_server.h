// Files by their build-ids from servers of the web (debuginfod(8)), with elfutils' libdebuginfod.
// It brings some thirty libraries with it, and is loaded when a server is to be asked, as libdw
// does.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

class DebugServer {
 public:
  // `urls`, separated by blanks, are asked in turn; with `progress` standard error tells how much
  // of a file has come. To be called before there are threads: the library takes both from the
  // environment. Nothing is asked yet.
  explicit DebugServer(const std::string& urls, bool progress = false);
  ~DebugServer();
  DebugServer(const DebugServer&) = delete;
  DebugServer& operator=(const DebugServer&) = delete;

  // The debug file of the build-id (hexadecimal), or the program itself, with that build-id.
  // A server that does not answer is given $DEBUGINFOD_TIMEOUT seconds, 10 where that is not set;
  // after that none is asked any more. Errors: no server has it, or what went wrong.
  absl::StatusOr<FileContent> DebugFile(const std::string& build_id);
  absl::StatusOr<FileContent> Program(const std::string& build_id);

 private:
  class Client;

  absl::StatusOr<FileContent> Find(const std::string& build_id, bool program);

  std::unique_ptr<Client> client_;  // null: none yet
  absl::Status broken_;             // why none is asked any more
};

}  // namespace xenoscope::symbolizer
