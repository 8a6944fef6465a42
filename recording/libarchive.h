// libarchive, which is loaded when an archive is written or read: what it depends on (XML, Unicode)
// would make every command start late.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "absl/status/statusor.h"

namespace xenoscope::recording {

// Its functions, as archive_write(3), archive_read(3) and archive_entry(3) describe them.
struct Libarchive {
  decltype(archive_error_string)* error_string = nullptr;

  decltype(archive_entry_new)* entry_new = nullptr;
  decltype(archive_entry_free)* entry_free = nullptr;
  decltype(archive_entry_set_pathname)* entry_set_pathname = nullptr;
  decltype(archive_entry_set_filetype)* entry_set_filetype = nullptr;
  decltype(archive_entry_set_perm)* entry_set_perm = nullptr;
  decltype(archive_entry_set_size)* entry_set_size = nullptr;
  decltype(archive_entry_set_mtime)* entry_set_mtime = nullptr;
  decltype(archive_entry_pathname)* entry_pathname = nullptr;
  decltype(archive_entry_filetype)* entry_filetype = nullptr;
  decltype(archive_entry_hardlink)* entry_hardlink = nullptr;

  decltype(archive_write_new)* write_new = nullptr;
  decltype(archive_write_free)* write_free = nullptr;
  decltype(archive_write_add_filter_zstd)* write_add_filter_zstd = nullptr;
  decltype(archive_write_set_format_pax_restricted)* write_set_format_pax_restricted = nullptr;
  decltype(archive_write_open_fd)* write_open_fd = nullptr;
  decltype(archive_write_header)* write_header = nullptr;
  decltype(archive_write_data)* write_data = nullptr;
  decltype(archive_write_close)* write_close = nullptr;

  decltype(archive_read_new)* read_new = nullptr;
  decltype(archive_read_free)* read_free = nullptr;
  decltype(archive_read_support_filter_zstd)* read_support_filter_zstd = nullptr;
  decltype(archive_read_support_format_tar)* read_support_format_tar = nullptr;
  decltype(archive_read_open_filename)* read_open_filename = nullptr;
  decltype(archive_read_next_header)* read_next_header = nullptr;
  decltype(archive_read_data_block)* read_data_block = nullptr;

  // Errors (NotFound): it is not installed.
  static absl::StatusOr<Libarchive> Load();
};

}  // namespace xenoscope::recording
