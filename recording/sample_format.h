// The bytes of samples/NAME.samples: one FileHeader, then chunks, each a ChunkHeader and its
// entries. docs/recording-format.md says the same in words. All little-endian, no padding.
#pragma once

#include <array>
#include <cstdint>

namespace xenoscope::recording {

inline constexpr std::array<char, 8> kSampleMagic{'X', 'E', 'N', 'O', 'S', 'M', 'P', 'L'};
inline constexpr uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"

struct FileHeader {
  std::array<char, 8> magic = kSampleMagic;
  uint16_t major = 1;
  uint16_t minor = 1;
  uint32_t header_size = sizeof(kSampleMagic) + 8;  // chunks begin here
};
static_assert(sizeof(FileHeader) == 16);

// What a chunk's entries are. A reader passes over kinds that it does not know, and counts them.
enum class ChunkKind : uint16_t {
  kBracketed = 1,  // drained from a buffer
  kStopped = 2,    // read from a vCPU while it was stopped, between `previous_before` and `after`
};

// The entries that one drain found in the buffer of one vCPU, or one look at it.
struct ChunkHeader {
  uint32_t magic = kChunkMagic;
  ChunkKind kind = ChunkKind::kBracketed;
  uint16_t domain = 0;
  uint32_t vcpu = 0;
  uint32_t count = 0;            // entries
  uint32_t entry_size = 0;       // bytes; a newer minor version may append to an entry
  uint32_t entries_crc = 0;      // CRC-32 (ISO 3309, as zlib's) of the entries
  uint64_t previous_before = 0;  // TSC read before the drain before this one
  uint64_t before = 0;           // TSC read before this drain looked into the buffer
  uint64_t after = 0;            // TSC read after this drain looked into the buffer
  uint32_t reserved = 0;
  uint32_t header_crc = 0;  // CRC-32 of the bytes of this header before this field
};
static_assert(sizeof(ChunkHeader) == 56);

struct Entry {
  uint64_t address = 0;
  uint8_t mode = 0;   // Mode
  uint8_t event = 0;  // index into recording.json's events
  std::array<uint8_t, 6> reserved{};
};
static_assert(sizeof(Entry) == 16);

}  // namespace xenoscope::recording
