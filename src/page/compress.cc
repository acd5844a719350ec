#include "compress.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tutti/base/parallel.h"

namespace tutti {
namespace {

// For columns of numbers: twice as fast as 6, and 3 % larger.
constexpr int kLevel = 5;
constexpr int kWindowBits = 15;
constexpr size_t kWindow = size_t{1} << kWindowBits;  // [bytes] as far as deflate refers back
constexpr size_t kPiece = size_t{1} << 19;            // [bytes]; a few more a flush of each
// Of RFC 1950: deflate with the largest window, compressed by a fast level.
constexpr std::array<char, 2> kHeader = {'\x78', '\x5e'};

struct Piece {
  std::string bytes;
  uLong adler = 0;
  bool failed = false;
};

const Bytef* Bytes(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

// The part of the stream that begins at `begin`. All but the last end at a byte, with a flush.
Piece Deflate(std::string_view text, size_t begin) {
  const std::string_view input = text.substr(begin, kPiece);
  const std::string_view before =
      text.substr(begin - std::min(begin, kWindow), std::min(begin, kWindow));
  const bool last = begin + input.size() == text.size();
  constexpr int kRaw = -kWindowBits;  // without header and checksum
  constexpr int kMemoryLevel = 9;
  Piece piece;
  z_stream stream = {};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kRaw, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    piece.failed = true;
    return piece;
  }
  deflateSetDictionary(&stream, Bytes(before), static_cast<uInt>(before.size()));
  constexpr size_t kFlush = 16;  // more than an empty block takes
  piece.bytes.resize(deflateBound(&stream, static_cast<uLong>(input.size())) + kFlush);
  stream.next_in = const_cast<Bytef*>(Bytes(input));
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(piece.bytes.data());
  stream.avail_out = static_cast<uInt>(piece.bytes.size());
  const int code = deflate(&stream, last ? Z_FINISH : Z_SYNC_FLUSH);
  piece.failed = code != (last ? Z_STREAM_END : Z_OK) || stream.avail_in > 0;
  piece.bytes.resize(stream.total_out);
  deflateEnd(&stream);
  piece.adler = adler32(adler32(0, nullptr, 0), Bytes(input), static_cast<uInt>(input.size()));
  return piece;
}

}  // namespace

Result<std::string> Compress(std::string_view text) {
  const size_t count = std::max<size_t>(1, (text.size() + kPiece - 1) / kPiece);
  std::vector<Piece> pieces(count);
  ParallelFor(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      pieces[at] = Deflate(text, at * kPiece);
    }
  });
  std::string out(kHeader.begin(), kHeader.end());
  uLong adler = adler32(0, nullptr, 0);
  for (size_t i = 0; i < count; ++i) {
    if (pieces[i].failed)
      return MakeError(ErrorCode::kResourceExhausted,
                       fmt::format("the {} bytes of a page cannot be compressed", text.size()));
    out += pieces[i].bytes;
    const size_t length = std::min(kPiece, text.size() - i * kPiece);
    adler = adler32_combine(adler, pieces[i].adler, static_cast<z_off_t>(length));
  }
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(adler >> shift & 0xff);
  return out;
}

}  // namespace tutti
