// A message between two ranks of a communicator, for tests of what other ranks do meanwhile.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "support/status.h"
#include "tutti/communicator.h"

namespace tutti::test_support {

// Rank 0 sends a word to rank 1. To be called by both.
inline void ExchangeWord(Communicator& ranks, int32_t sent) {
  int32_t word = ranks.rank() == 0 ? sent : -1;
  const Message message{
      .peer = 1 - ranks.rank(), .data = &word, .bytes = sizeof(word), .is_send = ranks.rank() == 0};
  ASSERT_TRUE(Succeeded(ranks.Exchange({&message, 1}))) << "word " << sent;
  ASSERT_EQ(word, sent);
}

}  // namespace tutti::test_support
