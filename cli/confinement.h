// Restricts a command that reads recordings before it reads them: their content is not trusted.
#pragma once

#include "cli/options.h"

namespace xenoscope::cli {

// Restricts this process, which must not have threads yet, to the files that the command line names
// and to the places of symbols, sources and system files:
// - it may read what arguments of `command` name, configuration files, the working directory, the
//   directories in / except /etc, /proc, /run, /var and similar ones, and files in home
//   directories that are not hidden;
// - it may write the directory of the output, the cache and $TMPDIR;
// - it may use TCP only where a debuginfod server may be asked, where the store is a
//   server, or where a port serves metrics.
// Under sudo the process becomes the user that called sudo, if that user may read and write all
// that the command line names; otherwise it stays root without root's other capabilities.
// Restrictions that the kernel does not have are left out. Nothing is printed: opening another file
// fails as if permission were missing.
void Confine(Command command);

}  // namespace xenoscope::cli
