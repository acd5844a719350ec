#include "column.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "bytes.h"
#include "tutti/base/check.h"

namespace tutti {
namespace {

enum Form : uint8_t { kRelativeToSmallest = 0, kRelativeToPrevious = 1 };
enum Codec : uint8_t { kRepeated = 0, kRaw = 1, kZstd = 2 };
constexpr int kLevel = 1;  // planes hold little but skewed bytes: higher levels gain nothing

// Small magnitudes of either sign become small numbers. Wraps, so that any int64_t is served.
uint64_t ZigZag(uint64_t value) { return (value << 1) ^ (0 - (value >> 63)); }
uint64_t UnZigZag(uint64_t value) { return (value >> 1) ^ (0 - (value & 1)); }

}  // namespace

struct ColumnEncoder::Context {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  Context() { TUTTI_CHECK(zstd != nullptr); }
  ~Context() { ZSTD_freeCCtx(zstd); }
};
struct ColumnDecoder::Context {
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  Context() { TUTTI_CHECK(zstd != nullptr); }
  ~Context() { ZSTD_freeDCtx(zstd); }
};

ColumnEncoder::ColumnEncoder() : context_(std::make_unique<Context>()) {}
ColumnEncoder::~ColumnEncoder() = default;
ColumnDecoder::ColumnDecoder() : context_(std::make_unique<Context>()) {}
ColumnDecoder::~ColumnDecoder() = default;

void ColumnEncoder::Append(std::span<const int64_t> values, std::string& out) {
  relative_.resize(values.size());
  if (std::equal(values.begin() + 1, values.end(), values.begin())) {
    // Most columns of most blocks. Both forms are equally short.
    std::fill(relative_.begin(), relative_.end(), 0);
    Encode(kRelativeToSmallest, static_cast<uint64_t>(values.front()), plain_);
    out += plain_;
    return;
  }
  const auto smallest = static_cast<uint64_t>(*std::min_element(values.begin(), values.end()));
  for (size_t i = 0; i < values.size(); ++i)
    relative_[i] = static_cast<uint64_t>(values[i]) - smallest;
  Encode(kRelativeToSmallest, smallest, plain_);
  auto previous = static_cast<uint64_t>(values.front());
  for (size_t i = 0; i < values.size(); ++i) {
    relative_[i] = ZigZag(static_cast<uint64_t>(values[i]) - previous);
    previous = static_cast<uint64_t>(values[i]);
  }
  Encode(kRelativeToPrevious, static_cast<uint64_t>(values.front()), delta_);
  out += delta_.size() < plain_.size() ? delta_ : plain_;
}

void ColumnEncoder::Encode(uint8_t form, uint64_t base, std::string& out) {
  out.clear();
  uint64_t any = 0;
  for (uint64_t value : relative_) any |= value;
  uint8_t num_planes = 0;
  for (; any != 0; any >>= 8) ++num_planes;
  PutU8(out, form);
  PutU8(out, num_planes);
  PutU64(out, base);
  const size_t count = relative_.size();
  plane_.resize(count);
  frame_.resize(ZSTD_compressBound(count));
  for (uint8_t k = 0; k < num_planes; ++k) {
    for (size_t i = 0; i < count; ++i) plane_[i] = static_cast<char>(relative_[i] >> (8 * k));
    if (std::all_of(plane_.begin(), plane_.end(), [&](char c) { return c == plane_[0]; })) {
      PutU8(out, kRepeated);
      out += plane_[0];
      continue;
    }
    const size_t length = ZSTD_compressCCtx(context_->zstd, frame_.data(), frame_.size(),
                                            plane_.data(), count, kLevel);
    if (ZSTD_isError(length) == 0 && length + 4 < count) {
      PutU8(out, kZstd);
      PutU32(out, static_cast<uint32_t>(length));
      out.append(frame_, 0, length);
    } else {
      PutU8(out, kRaw);
      out += plane_;
    }
  }
}

bool ColumnDecoder::TakePlane(std::string_view& in, size_t count) {
  if (in.empty()) return false;
  const uint8_t codec = GetU8(in.data());
  in.remove_prefix(1);
  plane_.resize(count);
  switch (codec) {
    case kRepeated:
      if (in.empty()) return false;
      std::memset(plane_.data(), in[0], count);
      in.remove_prefix(1);
      return true;
    case kRaw:
      if (in.size() < count) return false;
      std::memcpy(plane_.data(), in.data(), count);
      in.remove_prefix(count);
      return true;
    case kZstd: {
      if (in.size() < 4) return false;
      const uint32_t length = GetU32(in.data());
      in.remove_prefix(4);
      if (in.size() < length) return false;
      const size_t got =
          ZSTD_decompressDCtx(context_->zstd, plane_.data(), count, in.data(), length);
      in.remove_prefix(length);
      return got == count;  // an error code is never a size
    }
    default:
      return false;
  }
}

bool ColumnDecoder::Take(std::string_view& in, std::span<int64_t> values) {
  if (in.size() < 10) return false;
  const uint8_t form = GetU8(in.data()), num_planes = GetU8(in.data() + 1);
  const uint64_t base = GetU64(in.data() + 2);
  in.remove_prefix(10);
  if (form > kRelativeToPrevious || num_planes > 8) return false;
  std::fill(values.begin(), values.end(), 0);
  for (int k = 0; k < num_planes; ++k) {
    if (!TakePlane(in, values.size())) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t byte = static_cast<uint8_t>(plane_[i]);
      values[i] = static_cast<int64_t>(static_cast<uint64_t>(values[i]) | (byte << (8 * k)));
    }
  }
  uint64_t previous = base;
  for (int64_t& value : values) {
    const auto relative = static_cast<uint64_t>(value);
    const uint64_t absolute =
        form == kRelativeToSmallest ? base + relative : previous + UnZigZag(relative);
    previous = absolute;
    value = static_cast<int64_t>(absolute);
  }
  return true;
}

}  // namespace tutti
