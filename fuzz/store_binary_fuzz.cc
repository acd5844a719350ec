// Any bytes as a binary schedule, once as they are and once with checksums that fit, so that the
// fuzzer gets behind them: an error, or a schedule that survives being written and read again.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "store/binary.h"
#include "store/bytes.h"
#include "tutti/base/check.h"
#include "tutti/sched/symmetric.h"
#include "tutti/store/store.h"

namespace {

using namespace tutti;

void SetU64(std::string& bytes, size_t at, uint64_t value) {
  std::string field;
  PutU64(field, value);
  bytes.replace(at, field.size(), field);
}

// Writes every checksum of the layout where there is room for it.
void Seal(std::string& bytes) {
  using namespace binary;
  const auto sum = [&bytes](size_t at, size_t count, uint64_t seed) {
    return Checksum(std::string_view(bytes).substr(at, count), seed);
  };
  if (bytes.size() < kPreambleBytes + kChecksumBytes + kTrailerBytes) return;
  bytes.replace(0, kMagic.size(), kMagic);
  SetU64(bytes, 32, sum(0, 32, 0));
  const uint64_t frame = GetU64(bytes.data() + 24);
  const size_t room = bytes.size() - kPreambleBytes - kChecksumBytes - kTrailerBytes;
  if (frame > room) return;
  size_t at = kPreambleBytes + frame;
  SetU64(bytes, at, sum(kPreambleBytes, frame, 0));
  at += kChecksumBytes;
  uint64_t chain = sum(0, at, 0);
  const size_t end = bytes.size() - kTrailerBytes;
  while (end - at >= kBlockHeaderBytes) {
    const uint64_t payload = GetU64(bytes.data() + at + 16);
    if (payload > end - at - kBlockHeaderBytes) break;
    const uint64_t checksum = sum(at + kBlockHeaderBytes, payload, sum(at, 24, 0));
    SetU64(bytes, at + 24, checksum);
    chain = checksum ^ std::rotl(chain, 1);
    at += kBlockHeaderBytes + payload;
  }
  SetU64(bytes, end + 24, chain);
  SetU64(bytes, end + 32, sum(end, 32, 0));
}

// Version 2. Written out only where that is not much longer than the file: a block of a hundred
// bytes may hold 65,536 transfers, for each rank.
void CheckSymmetric(const std::string& bytes) {
  constexpr int64_t kMaxWrittenOut = 1 << 20;
  const auto read = SymmetricFromBinary(std::as_bytes(std::span(bytes)));
  if (!read) {
    TUTTI_CHECK(!read.error().message.empty());
    return;
  }
  const auto translations = Translations::Make(read->topology, read->schedule.generators);
  if (!translations) return;  // for the verifier to say
  const auto text = SymmetricToBinary(read->topology, *translations, read->schedule);
  TUTTI_CHECK(text.has_value());
  const auto again = SymmetricFromBinary(std::as_bytes(std::span(*text)));
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(again->topology.ToText() == read->topology.ToText());
  TUTTI_CHECK(again->schedule.root.transfers.size() == read->schedule.root.transfers.size());
  const auto translations_again = Translations::Make(again->topology, again->schedule.generators);
  TUTTI_CHECK(translations_again.has_value());
  TUTTI_CHECK(*SymmetricToBinary(again->topology, *translations_again, again->schedule) == *text);
  if (CountTransfers(read->schedule) <= kMaxWrittenOut)
    TUTTI_CHECK(ScheduleFromBinary(std::as_bytes(std::span(bytes))).has_value());
}

void Check(const std::string& bytes) {
  if (bytes.size() > 8 && bytes[8] == static_cast<char>(binary::kSymmetricVersion))
    return CheckSymmetric(bytes);
  const auto read = ScheduleFromBinary(std::as_bytes(std::span(bytes)));
  if (!read) {
    TUTTI_CHECK(!read.error().message.empty());
    return;
  }
  const auto text = ScheduleToBinary(read->topology, read->schedule);
  TUTTI_CHECK(text.has_value());
  const auto again = ScheduleFromBinary(std::as_bytes(std::span(*text)));
  TUTTI_CHECK(again.has_value());
  TUTTI_CHECK(again->schedule.transfers.size() == read->schedule.transfers.size());
  TUTTI_CHECK(again->topology.ToText() == read->topology.ToText());
  // The first writing may order what happens together; from then on nothing moves.
  TUTTI_CHECK(*ScheduleToBinary(again->topology, again->schedule) == *text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(data, data + size);
  Check(bytes);
  Seal(bytes);
  Check(bytes);
  return 0;
}
