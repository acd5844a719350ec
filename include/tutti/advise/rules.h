// Rules: which of a library's own algorithms suits which size, in the files that libraries read.
//
// Model       A format is a library's: it names those of its algorithms that are one of ours, by
//             collective. Rules for a collective say of a communicator (ranks, and on how many
//             nodes) at which sizes which algorithm is the best. What no rule is for stays the
//             library's own choice.
// Units       Sizes are M in bytes, as everywhere; a format that counts otherwise converts.
// Errors      kInvalidArgument: rules that are there twice; numbers beyond the format's; a base that
//             is not the library's file, with what is missing.
// Reference   docs/formats/rules.md
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/coll/collective.h"

namespace tutti {

struct LibraryAlgorithm {
  CollectiveKind kind;
  std::string_view ours, theirs;  // `-a ours`
  int32_t number = 0;             // where the library counts them
  bool power_of_two = false;      // of ranks only
};

struct SizeRule {
  int64_t from_bytes = 0;  // up to where the next begins
  std::string_view ours;   // one of the format's for this collective
};

struct CollectiveRules {
  CollectiveKind kind;
  int32_t ranks = 0;
  int32_t nodes = 0;            // 0: any number
  std::vector<SizeRule> sizes;  // ascending from 0 on
};

struct RuleFormat {
  std::string_view name, description, extension;
  std::vector<LibraryAlgorithm> algorithms;
  // Rules by collective and then by ranks; no two with the same of both and nodes. `base` is
  // the text of the library's own file where rules are put into one.
  Result<std::string> (*write)(const RuleFormat&, const std::vector<CollectiveRules>&,
                               std::string_view base) = nullptr;
  bool needs_base = false;

  // nullptr: the library has none that is ours.
  const LibraryAlgorithm* Find(CollectiveKind kind, std::string_view ours) const;
  // Those of one collective, in order.
  std::vector<const LibraryAlgorithm*> Of(CollectiveKind kind) const;
  // Those with a choice, in order.
  std::vector<CollectiveKind> Collectives() const;
};

// In the order of the help.
std::span<const RuleFormat> RuleFormats();
// nullptr where there is none of that name.
const RuleFormat* FindRuleFormat(std::string_view name);

// Sorts the rules and writes them.
Result<std::string> WriteRules(const RuleFormat& format, std::vector<CollectiveRules> rules,
                               std::string_view base = {});

}  // namespace tutti
