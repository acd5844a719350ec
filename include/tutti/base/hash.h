// Fnv1a: a hash of what is added to it, in order, the same on every machine. Fingerprints in files
// are made of it; it does not protect against who wants two things to have one.
//
// Reference   Fowler, Noll, Vo: FNV-1a, 64 bits.
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti {

class Fnv1a {
 public:
  void AddBytes(std::string_view bytes) {
    for (const char byte : bytes) Mix(static_cast<uint8_t>(byte));
  }
  // Eight bytes, the lowest first.
  void AddWord(int64_t word) {
    for (int i = 0; i < 8; ++i) Mix(static_cast<uint64_t>(word) >> (8 * i) & 0xff);
  }
  // What no byte is: where one text ends and the next begins.
  void AddSeparator() { Mix(0x100); }
  uint64_t value() const { return hash_; }

 private:
  void Mix(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3u; }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace tutti
