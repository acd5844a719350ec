// What an instruction of a plan is called in a Chrome trace: "send to 3", "receive from 3", "reduce from 3", "copy".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "tutti/lower/plan.h"

namespace tutti {

// `peer`: to whom it sends, or from whom it receives; of a copy nobody.
inline std::string InstructionName(OpCode op, int32_t peer) {
  switch (op) {
    case OpCode::kSend:
      return fmt::format("send to {}", peer);
    case OpCode::kRecv:
      return fmt::format("receive from {}", peer);
    case OpCode::kRecvReduce:
      return fmt::format("reduce from {}", peer);
    case OpCode::kCopy:
      break;
  }
  return "copy";
}

}  // namespace tutti
