#include "recording/libarchive.h"

#include "base/error.h"
#include "base/shared_library.h"

namespace xenoscope::recording {

absl::StatusOr<Libarchive> Libarchive::Load() {
  XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                             SharedLibrary::Load("libarchive.so.13", "archives"));
  Libarchive out;
  XENOSCOPE_RETURN_IF_ERROR(library.Find(
      "archive_error_string", out.error_string, "archive_entry_new", out.entry_new,
      "archive_entry_free", out.entry_free, "archive_entry_set_pathname", out.entry_set_pathname,
      "archive_entry_set_filetype", out.entry_set_filetype, "archive_entry_set_perm",
      out.entry_set_perm, "archive_entry_set_size", out.entry_set_size, "archive_entry_set_mtime",
      out.entry_set_mtime, "archive_entry_pathname", out.entry_pathname, "archive_entry_filetype",
      out.entry_filetype, "archive_entry_hardlink", out.entry_hardlink, "archive_write_new",
      out.write_new, "archive_write_free", out.write_free, "archive_write_add_filter_zstd",
      out.write_add_filter_zstd, "archive_write_set_format_pax_restricted",
      out.write_set_format_pax_restricted, "archive_write_open_fd", out.write_open_fd,
      "archive_write_header", out.write_header, "archive_write_data", out.write_data,
      "archive_write_close", out.write_close, "archive_read_new", out.read_new, "archive_read_free",
      out.read_free, "archive_read_support_filter_zstd", out.read_support_filter_zstd,
      "archive_read_support_format_tar", out.read_support_format_tar, "archive_read_open_filename",
      out.read_open_filename, "archive_read_next_header", out.read_next_header,
      "archive_read_data_block", out.read_data_block));
  return out;
}

}  // namespace xenoscope::recording
