#include "tutti/ipc/packet.h"

#include <algorithm>
#include <cstring>

namespace tutti::ipc {
namespace {

constexpr size_t kWord = 8, kWords = 8;
constexpr size_t kFixed = kWord * (3 + kWords);

void Put(uint64_t word, std::string& to) {
  for (size_t i = 0; i < kWord; ++i) to.push_back(static_cast<char>(word >> (8 * i) & 0xff));
}

uint64_t WordAt(std::span<const std::byte> bytes, size_t index) {
  uint64_t word = 0;
  for (size_t i = kWord; i-- > 0;)
    word = word << 8 | static_cast<uint64_t>(bytes[index * kWord + i]);
  return word;
}

}  // namespace

std::string Encode(const Packet& packet) {
  std::string bytes;
  Put(kMagic, bytes);
  Put(static_cast<uint64_t>(packet.kind), bytes);
  Put(packet.request, bytes);
  for (const uint64_t word : packet.words) Put(word, bytes);
  bytes.append(packet.text, 0, kMaxPacketBytes - kFixed);
  return bytes;
}

std::optional<Packet> Decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kFixed || bytes.size() > kMaxPacketBytes || WordAt(bytes, 0) != kMagic)
    return std::nullopt;
  const uint64_t kind = WordAt(bytes, 1);
  if (kind < 1 || kind > static_cast<uint64_t>(kLastKind)) return std::nullopt;
  Packet packet{.kind = static_cast<Kind>(kind), .request = WordAt(bytes, 2)};
  for (size_t i = 0; i < kWords; ++i) packet.words[i] = WordAt(bytes, 3 + i);
  packet.text.assign(reinterpret_cast<const char*>(bytes.data()) + kFixed, bytes.size() - kFixed);
  return packet;
}

}  // namespace tutti::ipc
