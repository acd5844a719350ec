// Files of tests/data/import.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tutti/import/import.h"

namespace tutti {

inline const std::string kSamples = "tests/data/import/";

inline Facts MustRead(const std::string& file) {
  Result<Facts> facts = ReadFacts(kSamples + file);
  if (!facts) ADD_FAILURE() << facts.error().message;
  return facts ? *std::move(facts) : Facts{};
}

// The network of these arguments, "[HOSTS=]FILE" of the samples.
inline Result<Imported> Import(const std::vector<std::string>& arguments,
                               const MergeOptions& options = {}) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    paths.push_back(equals == std::string::npos
                        ? kSamples + argument
                        : argument.substr(0, equals + 1) + kSamples + argument.substr(equals + 1));
  }
  Result<std::vector<Facts>> files = ReadFactFiles(paths);
  if (!files) return tl::unexpected(files.error());
  return MergeFacts(*std::move(files), options);
}

}  // namespace tutti
