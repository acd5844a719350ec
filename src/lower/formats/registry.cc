#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats.h"
#include "tutti/base/units.h"

namespace tutti {

std::span<const LoweringFormat> LoweringFormats() {
  // One line a format.
  // clang-format off
  static const std::vector<LoweringFormat> kTable = {
      lower::MscclXmlFormat(),
      lower::MscclppFormat(),
      lower::NcclGraphFormat(),
      lower::ChakraFormat(),
      lower::PlanFormat(),
      lower::PlanFileFormat(),
      lower::RoutesPerRankFormat(),
      lower::RouteTablesFormat(),
  };
  // clang-format on
  return kTable;
}

const LoweringFormat* FindLoweringFormat(std::string_view name) {
  for (const LoweringFormat& format : LoweringFormats())
    if (format.name == name) return &format;
  return nullptr;
}

std::vector<const FormatOption*> LoweringFormatOptions() {
  std::vector<const FormatOption*> options;
  for (const LoweringFormat& format : LoweringFormats())
    for (const FormatOption* option : format.options)
      if (std::find(options.begin(), options.end(), option) == options.end())
        options.push_back(option);
  return options;
}

std::string FormatOptionValues::Text(const FormatOption& option) const {
  const auto at = values_.find(std::string(option.name));
  return at == values_.end() ? std::string(option.fallback) : at->second;
}

Result<int64_t> FormatOptionValues::Bytes(const FormatOption& option) const {
  return ParseSizeBytes(Text(option));
}

Result<int32_t> FormatOptionValues::Count(const FormatOption& option, int32_t least,
                                          int32_t most) const {
  const std::string text = Text(option);
  int32_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < least || value > most)
    return InvalidArgument(fmt::format("--{} is '{}'; accepted are whole numbers from {} to {}",
                                       option.name, text, least, most));
  return value;
}

namespace lower {

const FormatOption kMinSize{"min-size", "Smallest call the runtime uses it for", "0"};
const FormatOption kMaxSize{"max-size", "Largest call; 0 means no limit", "0"};
const FormatOption kBoxRanks{
    "box-ranks",
    "Ranks a box, numbered box by box: between boxes go port channels (mscclpp) and NICs "
    "(nccl-graph); 0 means one box",
    "0"};
const FormatOption kInPlace{"in-place", "For calls in place", "", {}, true};

}  // namespace lower
}  // namespace tutti
