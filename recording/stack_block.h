// Registers and pieces of stacks that came with samples, many in one compressed block: a chunk of
// kind kStacks, whose samples are in the next chunk of kTimed or kStoppedWithCallers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "base/user_registers.h"
#include "recording/chunk_reader.h"
#include "recording/sample_format.h"

namespace xenoscope::recording {

// The registers of a thread in user mode, or of a guest's kernel, and the bytes of its stack from
// its stack pointer on.
struct UserStack {
  UserRegisters registers{};
  Bytes bytes;
};

// A block in the making.
class StackBlock {
 public:
  // Size, uncompressed, from which on a block is to be written. A reader decompresses one at a
  // time.
  static constexpr size_t kFullBytes = size_t{1} << 20;

  StackBlock();
  StackBlock(const StackBlock&) = delete;
  StackBlock& operator=(const StackBlock&) = delete;
  ~StackBlock();

  // Adds a stack, and returns what its sample's entry says of it.
  StackEntry Add(const UserStack& stack);
  // Adds a piece of another stack of the same sample, which begins at `address`.
  OuterStackEntry AddOuter(Address address, Bytes bytes);
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  [[nodiscard]] bool IsFull() const { return pieces_.size() >= kFullBytes; }
  // Returns the uncompressed size in bytes.
  [[nodiscard]] size_t size() const { return pieces_.size(); }
  // Returns the stacks as one frame of zstd, valid until the next call of a member.
  Bytes Compress();
  void Clear() { pieces_.clear(); }

 private:
  struct Compressor;

  std::vector<std::byte> pieces_;
  std::vector<std::byte> compressed_;
  std::unique_ptr<Compressor> compressor_;
};

// A block that was read.
class ReadStackBlock {
 public:
  ReadStackBlock();
  ReadStackBlock(const ReadStackBlock&) = delete;
  ReadStackBlock& operator=(const ReadStackBlock&) = delete;
  ~ReadStackBlock();

  // Decompresses the block of a chunk. Error (InvalidArgument): it is not zstd data of the size
  // that the header says, or the size is above kMaxStackBlockBytes.
  absl::Status Read(const Chunk& chunk);
  // Returns a sample's stack, valid until the next Read; nothing where the block has none there.
  [[nodiscard]] std::optional<UserStack> At(const StackEntry& entry) const;
  // Returns a piece of another stack of a sample; as At.
  [[nodiscard]] std::optional<Bytes> OuterAt(const OuterStackEntry& entry) const;

 private:
  struct Decompressor;

  std::vector<std::byte> pieces_;
  std::unique_ptr<Decompressor> decompressor_;
};

}  // namespace xenoscope::recording
