// The network of an expression, for tests of every room that may read expressions.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "tutti/topo/expression.h"

namespace tutti::test_support {

// Where the expression is wrong the test fails, and goes on with a network of one rank.
inline Topology Parse(std::string_view expression) {
  Result<Topology> topology = ParseTopology(expression);
  if (!topology) {
    ADD_FAILURE() << expression << ": " << topology.error().message;
    return *ParseTopology("mesh(1)");
  }
  return *std::move(topology);
}

}  // namespace tutti::test_support
