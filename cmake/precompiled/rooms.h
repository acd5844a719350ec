// What most files of the rooms include. Nothing of the project: a change would compile all anew.
#pragma once

#include <fmt/format.h>

#if defined(__GNUC__) && !defined(__clang__)
namespace fmt::detail {
// libfmt has it, but its header does not say so: what formats into a string would compile all of it again, 3 s a file.
extern template void vformat_to<char>(buffer<char>&, basic_string_view<char>,
                                      basic_format_args<buffer_context<char>>, locale_ref);
}  // namespace fmt::detail
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>
