// What a command that reads recordings gives up before it does: their content may be anybody's.
#pragma once

#include "cli/options.h"

namespace xenoscope::cli {

// Restricts this process, before it starts threads, to what the command line names, and where
// symbols, sources and the system's own files are:
// - read: what arguments of `command` name, and configuration files; the working directory, the
//   directories in / but /etc, /proc, /run, /var and the like, and of homes what is not hidden;
// - write: where the output goes, the cache, $TMPDIR;
// - TCP, only where a debuginfod server may be asked.
// Under sudo it becomes the user that called sudo, when he may read and write all that the command
// line names; else it stays root without root's other capabilities.
// What the kernel does not have is left out. It is silent: files that are out of reach cannot be
// opened, as if permission were missing.
void Confine(Command command);

}  // namespace xenoscope::cli
