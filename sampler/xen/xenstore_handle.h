// Xenstore by Xen's library libxenstore, which is loaded when it is first needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

class XenstoreHandle {
 public:
  // Errors: NotFound: the library is not installed; FailedPrecondition: xenstore does not answer;
  // Unimplemented: built without Xen's headers.
  static absl::StatusOr<std::unique_ptr<XenstoreHandle>> Open();
  XenstoreHandle(const XenstoreHandle&) = delete;
  XenstoreHandle& operator=(const XenstoreHandle&) = delete;
  ~XenstoreHandle();

  // Returns the value of a node; empty: it has none, or cannot be read.
  std::string Read(const std::string& path);
  // Returns the names of a node's children.
  std::vector<std::string> Directory(const std::string& path);
  // Removes a node and what is below it, if it is there.
  void Remove(const std::string& path);

 private:
  class Library;
  explicit XenstoreHandle(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

}  // namespace xenoscope::sampler
