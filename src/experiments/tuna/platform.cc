#include "platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "built_in_platforms.h"

namespace tutti::tuna {
namespace {

// The value of a setting or of a host's property: where it stands in the text of a platform.
Result<std::string_view> PropertyIn(std::string_view platform, std::string_view property) {
  const std::string before = fmt::format("<prop id=\"{}\" value=\"", property);
  const size_t at = platform.find(before);
  if (at == platform.npos)
    return MakeError(ErrorCode::kNotFound, fmt::format("the platform does not set {}", property));
  const std::string_view rest = platform.substr(at + before.size());
  return rest.substr(0, rest.find('"'));
}

// Cost of a message: SMPI's setting "0:SECONDS:SECONDS A BYTE", or two properties of hosts.
struct Overhead {
  double seconds = 0, a_byte = 0;
};
constexpr std::string_view kLocalSeconds = "tutti_local_seconds";
constexpr std::string_view kLocalByteSeconds = "tutti_local_byte_seconds";

Result<std::string> WithProperty(std::string platform, std::string_view property,
                                 std::string_view value) {
  const Result<std::string_view> old = PropertyIn(platform, property);
  if (!old) return tl::unexpected(old.error());
  const auto at = static_cast<size_t>(old->data() - platform.data());
  return platform.replace(at, old->size(), value);
}

// What comes behind `before` in the text, as a number; nullopt: nothing, or no number.
std::optional<double> NumberBehind(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == text.npos) return std::nullopt;
  double number = 0;
  const auto read =
      std::from_chars(text.data() + at + before.size(), text.data() + text.size(), number);
  if (read.ec != std::errc()) return std::nullopt;
  return number;
}

Result<Overhead> RemoteOverhead(std::string_view platform, std::string_view setting) {
  const Result<std::string_view> text = PropertyIn(platform, setting);
  if (!text) return tl::unexpected(text.error());
  constexpr std::string_view kAllSizes = "0:";
  const std::optional<double> seconds = NumberBehind(*text, kAllSizes);
  if (!seconds)
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("the platform sets {} to '{}', not '0:...'", setting, *text));
  return Overhead{*seconds, NumberBehind(text->substr(kAllSizes.size()), ":").value_or(0)};
}

Result<Overhead> LocalOverhead(std::string_view platform) {
  Overhead overhead;
  for (const auto& [property, number] : {std::pair(kLocalSeconds, &overhead.seconds),
                                         std::pair(kLocalByteSeconds, &overhead.a_byte)}) {
    const Result<std::string_view> text = PropertyIn(platform, property);
    if (!text) return tl::unexpected(text.error());
    *number = NumberBehind(*text, "").value_or(0);
  }
  return overhead;
}

}  // namespace

Result<std::string> PlatformText(const Machine& machine) {
  const auto files = BuiltInPlatformFiles();
  const auto file = std::find_if(files.begin(), files.end(), [&](const BuiltInPlatform& each) {
    return each.name == machine.platform;
  });
  if (file == files.end())
    return MakeError(ErrorCode::kNotFound,
                     fmt::format("no platform is named '{}'", machine.platform));
  Result<std::string> text = std::string(file->text);
  if (machine.local == LocalMessages::kCheap) {
    text = WithProperty(*std::move(text), kLocalSeconds, "50e-9");
    if (text) text = WithProperty(*std::move(text), kLocalByteSeconds, "0.1e-9");
  }
  return text;
}

Result<double> DirectFloor(const Machine& machine, int64_t size) {
  const Result<std::string> platform = PlatformText(machine);
  if (!platform) return tl::unexpected(platform.error());
  const Result<Overhead> send = RemoteOverhead(*platform, "smpi/ois");
  if (!send) return tl::unexpected(send.error());
  const Result<Overhead> receive = RemoteOverhead(*platform, "smpi/or");
  if (!receive) return tl::unexpected(receive.error());
  const Overhead between{send->seconds + receive->seconds, send->a_byte + receive->a_byte};
  Overhead inside = between;
  if (machine.local != LocalMessages::kAsRemote) {
    const Result<Overhead> local = LocalOverhead(*platform);
    if (!local) return tl::unexpected(local.error());
    inside = {2 * local->seconds, 2 * local->a_byte};
  }
  // Whole FP64 values, evenly from none to all that fit: one choice of these is an empty block.
  const int64_t whole_values = size / 8;
  const auto values = static_cast<double>(whole_values);
  const auto of_a_block = [&](const Overhead& overhead) {
    return values / (values + 1) * overhead.seconds + 8 * values / 2 * overhead.a_byte;
  };
  // Mean over the ranks; the last node may have fewer.
  const int64_t full = machine.ranks / machine.RanksPerNode();
  const int64_t last = machine.ranks % machine.RanksPerNode();
  const int64_t pairs_inside =
      full * machine.RanksPerNode() * (machine.RanksPerNode() - 1) + last * (last - 1);
  const double peers_inside =
      static_cast<double>(pairs_inside) / static_cast<double>(machine.ranks);
  const double peers_between = static_cast<double>(machine.ranks - 1) - peers_inside;
  return peers_inside * of_a_block(inside) + peers_between * of_a_block(between);
}

}  // namespace tutti::tuna
