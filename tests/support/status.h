// Outcomes as GoogleTest wants to hear of them.
//
//   EXPECT_TRUE(Succeeded(communicator.Barrier()));
#pragma once

#include <gtest/gtest.h>

#include "tutti/base/result.h"

namespace tutti::test_support {

inline testing::AssertionResult Succeeded(const Status& status) {
  return status ? testing::AssertionSuccess()
                : testing::AssertionFailure() << status.error().message;
}

}  // namespace tutti::test_support
