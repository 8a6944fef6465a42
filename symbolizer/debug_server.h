// A client of debuginfod(8) servers, which have files by build-id, through elfutils' libdebuginfod.
// The library depends on some thirty others, so it is loaded when a server is first asked, as libdw
// does it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

class DebugServer {
 public:
  // `urls`, separated by blanks, are asked in turn. With `progress`, standard error shows how much
  // of a file has come. To be called before there are threads, as the library takes both from the
  // environment. No server is asked yet.
  explicit DebugServer(const std::string& urls, bool progress = false);
  ~DebugServer();
  DebugServer(const DebugServer&) = delete;
  DebugServer& operator=(const DebugServer&) = delete;

  // Returns the debug file of the build-id (hexadecimal), or the program with that build-id. A
  // server has $DEBUGINFOD_TIMEOUT seconds to answer, 10 if that is not set; if it does not, no
  // server is asked any more. Errors: no server has the file, or what went wrong.
  absl::StatusOr<FileContent> DebugFile(const std::string& build_id);
  absl::StatusOr<FileContent> Program(const std::string& build_id);

 private:
  class Client;

  absl::StatusOr<FileContent> Find(const std::string& build_id, bool program);

  std::unique_ptr<Client> client_;  // null: not loaded yet
  absl::Status broken_;             // reason why no server is asked any more
};

}  // namespace xenoscope::symbolizer
