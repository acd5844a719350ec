// The syntax of topology expressions, without their meaning: text in, tree out.
//
//   value := word | "quoted path" | list | call
//   call  := name [ '(' [ item { ',' item } ] ')' ]
//   item  := [ keyword '=' ] value
//   list  := '[' word { ',' word } ']' [ unit ]
//
// A call without parentheses is a family such as `dgx1` or, where a family takes one, the name of a
// member: `distreg(octahedron)`. A word that ends in `.json` and a quoted text are paths; so is a
// whole text that ends in `.json`. Spaces between tokens do not count.
//
// Errors  kInvalidArgument: "column 7: ..." with what was found and what is accepted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"

namespace tutti::topo {

inline constexpr size_t kMaxNesting = 64;
inline constexpr size_t kMaxExpressionLength = size_t{1} << 20;

struct SyntaxNode {
  enum class Kind { kWord, kPath, kList, kCall };
  Kind kind = Kind::kWord;
  size_t column = 1;         // 1-based, in bytes
  std::string text = {};     // the word, the path, the name called, the unit behind a list
  std::string keyword = {};  // empty for a positional argument
  size_t keyword_column = 0;
  std::vector<SyntaxNode> items = {};  // arguments of a call in their order, elements of a list
  bool has_parentheses = false;
};

Result<SyntaxNode> ParseSyntax(std::string_view text);

// "column 7: message".
tl::unexpected<Error> FaultAt(size_t column, const std::string& message);
// What a path of a network ends in.
bool EndsInJson(std::string_view text);
// Text of the user for an error message: printable, at most 60 characters.
std::string Shown(std::string_view text);

}  // namespace tutti::topo
