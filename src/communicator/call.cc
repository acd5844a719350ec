#include "call.h"

#include <fmt/format.h>

#include "tutti/base/hash.h"

namespace tutti {

bool CollectiveCall::has_root() const {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

bool CollectiveCall::counts_blocks() const {
  return kind != CollectiveKind::kAllReduce && kind != CollectiveKind::kBroadcast &&
         kind != CollectiveKind::kReduce;
}

std::string ToText(const CollectiveCall& call) {
  std::string text = fmt::format("{} of {} {}", Name(call.kind), call.count, Name(call.type));
  if (Reduces(call.kind)) text += fmt::format(" ({})", Name(call.op));
  if (call.has_root()) text += fmt::format(" with root {}", call.root);
  return text;
}

uint64_t SignatureOf(const CollectiveCall& call, uint64_t plan_digest) {
  Fnv1a signature;
  signature.AddWord(int64_t{static_cast<uint8_t>(call.kind)} << 24 |
                    int64_t{static_cast<uint8_t>(call.type)} << 16 |
                    int64_t{static_cast<uint8_t>(call.op)} << 8);
  signature.AddWord(call.count);
  signature.AddWord(call.root);
  signature.AddWord(static_cast<int64_t>(plan_digest));
  return signature.value();
}

}  // namespace tutti
