// What stands on the wire between two ranks of a TCP connection, little-endian.
//
// Hello       64 bytes, sender to receiver, first: who connects to which connection. Nobody without
//             the cookie is served.
// Welcome     24 bytes back: up to where the receiver has consumed, from where the sender goes on.
// Header      16 bytes before each message (and again where one is resumed).
//             One of message kQuestion is none: it asks whether the way is there, and the receiver's kernel answers.
// Ack         8 bytes back: all messages before this number are taken.
// Refusal     24 bytes back, in place of an ack and the last: the receiver wanted another message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tutti::tcp {

inline constexpr size_t kHelloBytes = 64, kWelcomeBytes = 24, kHeaderBytes = 16, kAckBytes = 8;
inline constexpr size_t kRefusalBytes = 24;                     // the magic, the message, its call
inline constexpr uint64_t kHelloMagic = 0x0002'4f4c'4c45'4854;  // "THELLO", version 2
inline constexpr uint64_t kWelcomeMagic = 0x0001'4d4f'434c'4557;  // "WELCOM", version 1
inline constexpr uint64_t kRefusalMagic = ~uint64_t{0};           // no number of a message
inline constexpr uint64_t kQuestion = ~uint64_t{0};               // neither

// Where in a hello the words stand that differ between the connections of a rank.
inline constexpr size_t kHelloEnds = 40, kHelloChannel = 48;

using Cookie = std::array<uint64_t, 2>;

inline void PutWord(uint64_t word, std::byte* to) {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<std::byte>(word >> (8 * i) & 0xff);
}
inline uint64_t WordAt(const std::byte* from) {
  uint64_t word = 0;
  for (int i = 8; i-- > 0;) word = word << 8 | static_cast<uint64_t>(from[i]);
  return word;
}

struct Hello {
  uint64_t communicator = 0, epoch = 0;
  Cookie cookie{};
  uint32_t sender = 0, receiver = 0;
  uint64_t channel = 0;
  friend bool operator==(const Hello&, const Hello&) = default;
};

inline std::array<std::byte, kHelloBytes> Encode(const Hello& hello) {
  std::array<std::byte, kHelloBytes> bytes{};
  const std::array<uint64_t, 8> words = {
      kHelloMagic,     hello.communicator,
      hello.epoch,     hello.cookie[0],
      hello.cookie[1], uint64_t{hello.receiver} << 32 | hello.sender,
      hello.channel,   0};
  for (size_t i = 0; i < words.size(); ++i) PutWord(words[i], bytes.data() + 8 * i);
  return bytes;
}

// Frames of an open connection.
struct ResumePoint {
  uint64_t message = 0, byte = 0;
};

}  // namespace tutti::tcp
