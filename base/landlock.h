// Restricts what this process may open from now on (landlock(7)): a defect that a damaged or
// hostile input exploits then reaches no other files. A kernel older than Linux 5.13, or without
// Landlock, restricts nothing.
//
//   Landlock allowed({});
//   allowed.Read("/usr"); allowed.Write("/tmp");
//   allowed.Restrict();
#pragma once

#include <cstdint>
#include <string>

namespace xenoscope {

class Landlock {
 public:
  struct Exceptions {
    bool network = false;  // TCP may be used
    bool signals = false;  // processes that are not restricted may be signalled
  };

  explicit Landlock(const Exceptions& exceptions);
  Landlock(const Landlock&) = delete;
  Landlock& operator=(const Landlock&) = delete;
  ~Landlock();

  // What may be read, and what may be read, made, changed and removed: the file or directory with
  // all below it. One that is not there is passed over.
  void Read(const std::string& path);
  void Write(const std::string& path);

  // Nothing else can be opened from here on by this thread and those it starts, and no program be
  // started. Files that are open stay so. Whether the kernel does it.
  bool Restrict();

 private:
  void Allow(const std::string& path, uint64_t access);

  uint64_t handled_ = 0;  // accesses to files that are restricted
  int rules_ = -1;        // a ruleset; -1: the kernel has none
};

}  // namespace xenoscope
