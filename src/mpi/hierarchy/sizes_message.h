// A list of sizes of blocks as a message. Most lists hold small numbers only, so a message takes 1,
// 2, 4 or 8 bytes per number, whatever holds its largest: with blocks of up to 255 bytes the
// metadata of an exchange is an eighth of what it would be.
//
// Model       8 bytes that hold the width, then the numbers in this machine's byte order.
// Invariants  Encode(n numbers) takes at most SizesMessageBytes(n); the receiver knows n.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::mpi {

constexpr int64_t SizesMessageBytes(int64_t count) { return 8 + 8 * count; }

// Returns the bytes of the message. Sizes are not negative.
int64_t EncodeSizes(std::span<const int64_t> sizes, std::byte* message);

void DecodeSizes(const std::byte* message, std::span<int64_t> sizes);

}  // namespace tutti::mpi
