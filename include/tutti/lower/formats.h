// The formats that schedules and routings are lowered to: one file and one line of the registry
// each.
//
// Model       A format takes a verified schedule or a routing, never both, and the values of the
//             options that it names. Options are shared: two formats that take `min-size` mean the
//             same by it. A format with a judge of its own has judged what it gives.
// Errors      kInvalidArgument: a value of an option; kInfeasible: what the format cannot carry;
//             both say which.
// Reference   docs/architecture.md "Where to add things".
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/sched/routing.h"
#include "tutti/sched/schedule.h"

namespace tutti {

struct FormatOption {
  std::string_view name;  // of the flag, without dashes
  std::string_view description;
  std::string_view fallback;                 // its value where none is given
  std::vector<std::string_view> words = {};  // the only values; empty: others
  bool is_switch = false;                    // takes no value: "" off, anything else on
};

// What was asked for, by name of the option; what is absent has its fallback.
class FormatOptionValues {
 public:
  void Set(std::string_view name, std::string value) { values_[std::string(name)] = value; }
  std::string Text(const FormatOption& option) const;
  bool On(const FormatOption& option) const { return !Text(option).empty(); }
  Result<int64_t> Bytes(const FormatOption& option) const;
  // Within [least, most].
  Result<int32_t> Count(const FormatOption& option, int32_t least, int32_t most) const;

 private:
  std::map<std::string, std::string> values_;
};

struct LoweredText {
  std::string text;
  // Instead of the text, where a format has several files: what follows the output's name, bytes.
  std::vector<std::pair<std::string, std::string>> files;
  bool judged = false;    // read again as its reader would, and proven correct
  std::string judged_as;  // "rccl would read it"
  std::vector<std::pair<std::string, std::string>> details;  // keys for --json
  std::string note = {};  // what of the schedule the format does not hold
};

struct LoweringFormat {
  std::string_view name, description, extension;
  std::vector<const FormatOption*> options;
  // One of the two.
  Result<LoweredText> (*schedule)(const Topology&, const Schedule&,
                                  const FormatOptionValues&) = nullptr;
  Result<LoweredText> (*routing)(const Topology&, const Routing&,
                                 const FormatOptionValues&) = nullptr;
  bool groups = false;  // also of collectives within groups of ranks
};

// In the order of the help.
std::span<const LoweringFormat> LoweringFormats();
// nullptr where there is none of that name.
const LoweringFormat* FindLoweringFormat(std::string_view name);
// Every option of any format once, in the order of the formats.
std::vector<const FormatOption*> LoweringFormatOptions();

}  // namespace tutti
