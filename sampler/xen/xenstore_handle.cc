#include "sampler/xen/xenstore_handle.h"

#include <utility>

#include "base/error.h"
#include "sampler/xen/privcmd.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xenstore.h>
}

#include <cstdlib>

#include "base/shared_library.h"

namespace xenoscope::sampler {
namespace {

// libxenstore.so.4 came with Xen 4.15; the functions used here are the same before.
absl::StatusOr<SharedLibrary> LoadXenstore() {
  absl::StatusOr<SharedLibrary> library = SharedLibrary::Load("libxenstore.so.4", "domains");
  if (library.ok()) return library;
  absl::StatusOr<SharedLibrary> older = SharedLibrary::Load("libxenstore.so.3.0", "domains");
  return older.ok() ? std::move(older) : std::move(library);
}

}  // namespace

// The library's functions, and a connection.
class XenstoreHandle::Library {
 public:
  absl::Status Open() {
    decltype(&xs_open) open = nullptr;
    decltype(&xs_close) close = nullptr;
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library, LoadXenstore());
    XENOSCOPE_RETURN_IF_ERROR(library.Find("xs_open", open, "xs_close", close, "xs_read", read,
                                           "xs_directory", directory, "xs_rm", remove));
    handle = {open(0), close};
    if (handle != nullptr) return absl::OkStatus();
    return PreconditionError("xenstore does not answer: start xenstored (service xen start)");
  }

  std::unique_ptr<xs_handle, decltype(&xs_close)> handle{nullptr, nullptr};
  decltype(&xs_read) read = nullptr;
  decltype(&xs_directory) directory = nullptr;
  decltype(&xs_rm) remove = nullptr;
};

absl::StatusOr<std::unique_ptr<XenstoreHandle>> XenstoreHandle::Open() {
  auto library = std::make_unique<Library>();
  XENOSCOPE_RETURN_IF_ERROR(library->Open());
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  return std::unique_ptr<XenstoreHandle>(new XenstoreHandle(std::move(library)));
}

std::string XenstoreHandle::Read(const std::string& path) {
  unsigned size = 0;
  void* const text = library_->read(library_->handle.get(), XBT_NULL, path.c_str(), &size);
  if (text == nullptr) return "";
  std::string value(static_cast<const char*>(text), size);
  std::free(text);
  return value;
}

std::vector<std::string> XenstoreHandle::Directory(const std::string& path) {
  unsigned count = 0;
  char** const names = library_->directory(library_->handle.get(), XBT_NULL, path.c_str(), &count);
  if (names == nullptr) return {};
  std::vector<std::string> result(names, names + count);
  std::free(names);
  return result;
}

void XenstoreHandle::Remove(const std::string& path) {
  library_->remove(library_->handle.get(), XBT_NULL, path.c_str());
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

class XenstoreHandle::Library {};

absl::StatusOr<std::unique_ptr<XenstoreHandle>> XenstoreHandle::Open() { return BuiltWithoutXen(); }
std::string XenstoreHandle::Read(const std::string& /*path*/) { return ""; }
std::vector<std::string> XenstoreHandle::Directory(const std::string& /*path*/) { return {}; }
void XenstoreHandle::Remove(const std::string& /*path*/) {}

}  // namespace xenoscope::sampler

#endif

namespace xenoscope::sampler {

XenstoreHandle::XenstoreHandle(std::unique_ptr<Library> library) : library_(std::move(library)) {}
XenstoreHandle::~XenstoreHandle() = default;

}  // namespace xenoscope::sampler
