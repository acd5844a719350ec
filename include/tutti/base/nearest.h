// Which accepted names somebody may have meant who wrote an unknown one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tutti {

// "; nearest: direct-table4, direct-table5": at most three names, those that need the fewest
// insertions, deletions and replacements first (at most three of them, and fewer than the name has
// letters); a name of which `word` is a part (of three letters or more) counts as one change away.
// Empty where none is near.
std::string NearestHint(std::string_view word, std::span<const std::string_view> accepted);

}  // namespace tutti
