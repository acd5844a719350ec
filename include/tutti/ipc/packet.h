// Packets: what a tenant's process and the daemon say to each other beside shared memory, over a Unix socket
// that keeps their bounds.
//
// Format      24 bytes of header {magic, kind, request}, eight words, then text; little-endian, at most
//             kMaxPacketBytes. What the words mean stands at the kinds. An answer has the request's
//             number; kRefused answers any of them.
// Errors      Decode: nothing where the bytes are no packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tutti::ipc {

inline constexpr size_t kMaxPacketBytes = 4096;
inline constexpr uint64_t kMagic = 0x0001'4449'5454'5554;  // "TUTTID", version 1

enum class Kind : uint32_t {
  kRefused = 1,  // words: ErrorCode; text: why
  kHello,        // text: token of the tenant, or none
  kWelcome,      // text: name of the tenant; descriptors: commands, status, doorbell
  kAllocate,     // words: bytes; text: UUID of the CUDA device, or none for memory of the host
  kAllocated,  // words: buffer, its bytes; of the host a descriptor: its memory, of a device the text: its 64-byte handle
  kFree,       // words: buffer
  kFreed,
  kMakeId,
  kIdMade,  // text: the unique id
  kJoin,    // words: number of ranks, rank; text: the unique id
  kJoined,  // words: line
  kLeave,   // words: line
  kLeft,
  kAbort,  // words: line; text: why
  kAborted,
  kWhy,      // words: line
  kBecause,  // words: ErrorCode; text: why it has failed
  kRegroup,  // words: line, milliseconds that it waits; text: what is asked (communicator/regroup.h)
  kRegrouped,  // text: what becomes of the rank
};
inline constexpr Kind kLastKind = Kind::kRegrouped;

struct Packet {
  Kind kind = Kind::kRefused;
  uint64_t request = 0;
  std::array<uint64_t, 8> words{};
  std::string text = {};
};

// The text is cut to what fits.
std::string Encode(const Packet& packet);
std::optional<Packet> Decode(std::span<const std::byte> bytes);

}  // namespace tutti::ipc
