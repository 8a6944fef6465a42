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

  // Allow reading, and reading, making, changing and removing: the file or directory with all below
  // it. A path that does not exist is passed over.
  void Read(const std::string& path);
  void Write(const std::string& path);

  // Restricts this thread and those that it starts: they can open nothing else, and start no
  // program. Open files stay open. Returns whether the kernel enforces it.
  bool Restrict();

 private:
  void Allow(const std::string& path, uint64_t access);

  uint64_t handled_ = 0;  // accesses to files that are restricted
  int rules_ = -1;        // a ruleset; -1: the kernel has none
};

}  // namespace xenoscope
