#include "tutti/alltoallv/algorithm.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace tutti::alltoallv {
namespace {

struct MethodRow {
  Method method;
  std::string_view name;
  Family family;
  bool takes_radix;
  bool takes_block_count;
};

constexpr MethodRow kMethods[] = {
    {Method::kAuto, "auto", Family::kChosen, false, false},
    {Method::kMpi, "mpi", Family::kNative, false, false},
    {Method::kLinear, "linear", Family::kDirect, false, false},
    {Method::kPairwise, "pairwise", Family::kDirect, false, false},
    {Method::kXor, "xor", Family::kDirect, false, false},
    {Method::kSpreadOut, "spread-out", Family::kDirect, false, false},
    {Method::kScattered, "scattered", Family::kDirect, false, true},
    {Method::kTwoPhaseBruck, "two-phase-bruck", Family::kForwarding, false, false},
    {Method::kPaddedBruck, "padded-bruck", Family::kForwarding, false, false},
    {Method::kTuna, "tuna", Family::kForwarding, true, false},
    {Method::kCoalesced, "coalesced", Family::kHierarchical, true, true},
    {Method::kStaggered, "staggered", Family::kHierarchical, true, true},
    {Method::kMultilevel, "multilevel", Family::kHierarchical, true, true},
    {Method::kShared, "shared", Family::kSharedMemory, false, true},
    {Method::kSharedCoalesced, "shared-coalesced", Family::kSharedMemory, false, true},
};

static_assert(HasRowPerMethod(kMethods));

const MethodRow& RowOf(Method method) { return kMethods[static_cast<size_t>(method)]; }

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  quoted.append(text).push_back('\'');
  return quoted;
}

std::string KeysOf(const MethodRow& row) {
  if (row.takes_radix && row.takes_block_count) return "r and b";
  if (row.takes_radix) return "r";
  return row.takes_block_count ? "b" : "";
}

}  // namespace

const std::vector<std::string_view>& MethodNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const MethodRow& row : kMethods) all.push_back(row.name);
    return all;
  }();
  return names;
}

Family FamilyOf(Method method) { return RowOf(method).family; }
bool TakesRadix(Method method) { return RowOf(method).takes_radix; }
bool TakesBlockCount(Method method) { return RowOf(method).takes_block_count; }

Result<Algorithm> ParseAlgorithm(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* row = std::find_if(std::begin(kMethods), std::end(kMethods),
                                 [name](const MethodRow& each) { return each.name == name; });
  if (row == std::end(kMethods)) {
    std::string accepted;
    for (const std::string_view each : MethodNames()) {
      accepted.append(accepted.empty() ? "" : ", ").append(each);
    }
    return InvalidArgument("unknown all-to-all-v algorithm " + Quoted(name) + "; accepted are " +
                           accepted);
  }
  Algorithm algorithm{.method = row->method};
  if (colon == std::string_view::npos) return algorithm;
  const std::string keys = KeysOf(*row);
  if (keys.empty()) return InvalidArgument(Quoted(name) + " takes no parameters");
  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const std::string_view word = rest.substr(0, rest.find(','));
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    const bool is_radix = key == "r" && row->takes_radix;
    if (!is_radix && !(key == "b" && row->takes_block_count)) {
      return InvalidArgument("unknown parameter " + Quoted(word) + " of " + Quoted(name) +
                             "; accepted: " + keys);
    }
    const std::string_view digits =
        equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    int& field = is_radix ? algorithm.radix : algorithm.block_count;
    if (field != 0) return InvalidArgument(Quoted(key) + " is given twice in " + Quoted(text));
    const int least = is_radix ? 2 : 1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), field);
    if (error != std::errc() || end != digits.data() + digits.size() || field < least) {
      return InvalidArgument(Quoted(key) + " of " + Quoted(name) + " is " + Quoted(digits) +
                             "; accepted are whole numbers from " + std::to_string(least));
    }
    if (word.size() == rest.size()) return algorithm;
    rest.remove_prefix(word.size() + 1);
  }
}

std::string ToString(const Algorithm& algorithm) {
  std::string text(RowOf(algorithm.method).name);
  char separator = ':';
  if (algorithm.radix != 0) {
    text.append(1, separator).append("r=").append(std::to_string(algorithm.radix));
    separator = ',';
  }
  if (algorithm.block_count != 0) {
    text.append(1, separator).append("b=").append(std::to_string(algorithm.block_count));
  }
  return text;
}

int RadixFor(int radix, int ranks) {
  if (radix == 0) {
    radix = 2;
    while (int64_t{radix} * radix < ranks) ++radix;
  }
  return std::clamp(radix, 2, std::max(2, ranks));
}

Algorithm Resolved(const Algorithm& algorithm, int ranks) {
  if (algorithm.method != Method::kTuna) return algorithm;
  const int radix = RadixFor(algorithm.radix, ranks);
  if (radix >= ranks) return {.method = Method::kSpreadOut};
  return {.method = Method::kTuna, .radix = radix};
}

}  // namespace tutti::alltoallv
