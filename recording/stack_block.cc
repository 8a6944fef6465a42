#include "recording/stack_block.h"

#include <zstd.h>

#include "base/error.h"

namespace xenoscope::recording {
namespace {

// zstd's fastest level of compression: stacks are compressed while they are recorded.
constexpr int kLevel = 1;
constexpr size_t kRegisterBytes = sizeof(UserRegisters);

}  // namespace

struct StackBlock::Compressor {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
};

StackBlock::StackBlock() : compressor_(std::make_unique<Compressor>()) {}
StackBlock::~StackBlock() = default;

StackEntry StackBlock::Add(const UserStack& stack) {
  StackEntry entry;
  entry.at = static_cast<uint32_t>(pieces_.size());
  entry.size = static_cast<uint32_t>(kRegisterBytes + stack.bytes.size());
  const Bytes registers = std::as_bytes(std::span(stack.registers));
  pieces_.insert(pieces_.end(), registers.begin(), registers.end());
  pieces_.insert(pieces_.end(), stack.bytes.begin(), stack.bytes.end());
  return entry;
}

OuterStackEntry StackBlock::AddOuter(Address address, Bytes bytes) {
  const OuterStackEntry entry{address, static_cast<uint32_t>(pieces_.size()),
                              static_cast<uint32_t>(bytes.size())};
  pieces_.insert(pieces_.end(), bytes.begin(), bytes.end());
  return entry;
}

Bytes StackBlock::Compress() {
  compressed_.resize(ZSTD_compressBound(pieces_.size()));
  const size_t size = ZSTD_compressCCtx(compressor_->context.get(), compressed_.data(),
                                        compressed_.size(), pieces_.data(), pieces_.size(), kLevel);
  return Bytes(compressed_).first(ZSTD_isError(size) != 0 ? 0 : size);
}

struct ReadStackBlock::Decompressor {
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context{ZSTD_createDCtx(), ZSTD_freeDCtx};
};

ReadStackBlock::ReadStackBlock() : decompressor_(std::make_unique<Decompressor>()) {}
ReadStackBlock::~ReadStackBlock() = default;

absl::Status ReadStackBlock::Read(const Chunk& chunk) {
  const uint32_t size = chunk.header.items;
  pieces_.clear();
  if (size > kMaxStackBlockBytes) {
    return InvalidError("a block of stacks has {} bytes, more than {}", size, kMaxStackBlockBytes);
  }
  pieces_.resize(size);
  const size_t got = ZSTD_decompressDCtx(decompressor_->context.get(), pieces_.data(), size,
                                         chunk.entries.data(), chunk.entries.size());
  if (ZSTD_isError(got) == 0 && got == size) return absl::OkStatus();
  pieces_.clear();
  return InvalidError("a block of stacks is not zstd data of {} bytes", size);
}

std::optional<UserStack> ReadStackBlock::At(const StackEntry& entry) const {
  const std::optional<Bytes> piece = Slice(pieces_, entry.at, entry.size);
  if (!piece || piece->size() < kRegisterBytes) return std::nullopt;
  return UserStack{LoadUnchecked<UserRegisters>(piece->data()), piece->subspan(kRegisterBytes)};
}

std::optional<Bytes> ReadStackBlock::OuterAt(const OuterStackEntry& entry) const {
  return Slice(pieces_, entry.at, entry.size);
}

}  // namespace xenoscope::recording
