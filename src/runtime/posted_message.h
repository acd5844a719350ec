// A message in the window of a sender: posted, not yet released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "piece.h"

namespace tutti {

struct PostedMessage {
  Piece source;
  uint64_t signature = 0;       // of the collective call
  bool saved = false;           // its data are in `copy`, since the source is about to be written
  std::vector<std::byte> copy;  // keeps its capacity from message to message

  void Post(const Piece& piece, uint64_t of_call) {
    source = piece;
    signature = of_call;
    saved = false;
  }
  void Save(const Piece& piece) {
    copy.resize(static_cast<size_t>(piece.Bytes()));
    Pack(piece, copy.data());
    saved = true;
  }
};

}  // namespace tutti
