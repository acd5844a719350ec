#include "syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace tutti::topo {
namespace {

constexpr std::string_view kPunctuation = "(),=[]\"";

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && !IsSpace(c);
}
bool IsNameStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// Letters, and the bytes of a mu.
bool IsUnitStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80;
}
std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<SyntaxNode> ParseWhole() {
    Result<SyntaxNode> node = ParseValue(0);
    if (!node) return node;
    if (char c = Peek(); c != '\0')
      return FaultAt(column(), fmt::format("found {} behind the end of the expression", Found()));
    return node;
  }

 private:
  size_t column() const { return at_ + 1; }

  // The next character that is not a space; 0 at the end.
  char Peek() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::string Found() {
    return Peek() == '\0' ? "the end" : fmt::format("'{}'", Shown(text_.substr(at_, 12)));
  }

  std::string Word() {
    const size_t begin = at_;
    while (at_ < text_.size() && !IsSpace(text_[at_]) && !IsControl(text_[at_]) &&
           kPunctuation.find(text_[at_]) == kPunctuation.npos)
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // A word; a number with the unit that stands behind a blank, as in "50 GB/s".
  std::string WordWithUnit() {
    std::string word = Word();
    if (word.empty() || (!IsDigit(word.front()) && word.front() != '.')) return word;
    const size_t end = at_;
    const char next = Peek();
    if (at_ == end || !IsUnitStart(next)) {
      at_ = end;
      return word;
    }
    return word + Word();
  }

  Result<SyntaxNode> ParseQuotedPath() {
    SyntaxNode node{.kind = SyntaxNode::Kind::kPath, .column = column()};
    const size_t end = text_.find('"', at_ + 1);
    if (end == text_.npos) return FaultAt(column(), "this quotation mark is never closed");
    node.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    for (char c : node.text)
      if (IsControl(c) || IsSpace(c) != (c == ' '))
        return FaultAt(node.column, "a control character in a quoted path");
    if (node.text.empty()) return FaultAt(node.column, "an empty path");
    return node;
  }

  Result<SyntaxNode> ParseList() {
    SyntaxNode node{.kind = SyntaxNode::Kind::kList, .column = column()};
    do {
      ++at_;  // '[' or ','
      Peek();
      SyntaxNode element{.column = column()};
      element.text = WordWithUnit();
      if (element.text.empty())
        return FaultAt(column(), fmt::format("found {}, wanted a value of the list", Found()));
      node.items.push_back(std::move(element));
    } while (Peek() == ',');
    if (Peek() != ']')
      return FaultAt(column(), fmt::format("found {}, wanted ',' or ']'", Found()));
    ++at_;
    Peek();
    node.text = Word();
    return node;
  }

  Result<SyntaxNode> ParseValue(size_t depth) {
    if (depth > kMaxNesting)
      return FaultAt(column(), fmt::format("nested deeper than {} levels", kMaxNesting));
    const char c = Peek();
    if (c == '"') return ParseQuotedPath();
    if (c == '[') return ParseList();
    SyntaxNode node{.column = column()};
    node.text = WordWithUnit();
    if (node.text.empty())
      return FaultAt(column(), fmt::format("found {}, wanted a family such as torus(4,4), a number "
                                           "or a path that ends in .json",
                                           Found()));
    if (EndsInJson(node.text)) {
      node.kind = SyntaxNode::Kind::kPath;
      return node;
    }
    if (IsNameStart(node.text.front())) node.kind = SyntaxNode::Kind::kCall;
    if (Peek() != '(') return node;
    if (node.kind != SyntaxNode::Kind::kCall)
      return FaultAt(node.column, fmt::format("'{}' is no name of a family", Shown(node.text)));
    return ParseArguments(std::move(node), depth);
  }

  Result<SyntaxNode> ParseArguments(SyntaxNode node, size_t depth) {
    node.has_parentheses = true;
    ++at_;
    if (Peek() == ')') {
      ++at_;
      return node;
    }
    for (;;) {
      Result<SyntaxNode> item = ParseItem(depth + 1);
      if (!item) return item;
      node.items.push_back(*std::move(item));
      if (Peek() == ')') break;
      if (Peek() != ',')
        return FaultAt(column(), fmt::format("found {}, wanted ',' or ')'", Found()));
      ++at_;
    }
    ++at_;
    return node;
  }

  Result<SyntaxNode> ParseItem(size_t depth) {
    Result<SyntaxNode> item = ParseValue(depth);
    if (!item || Peek() != '=') return item;
    if (item->kind != SyntaxNode::Kind::kCall || item->has_parentheses)
      return FaultAt(item->column, "only a name may stand before '='");
    ++at_;
    Result<SyntaxNode> value = ParseValue(depth);
    if (!value) return value;
    value->keyword = std::move(item->text);
    value->keyword_column = item->column;
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

tl::unexpected<Error> FaultAt(size_t column, const std::string& message) {
  return InvalidArgument(fmt::format("column {}: {}", column, message));
}

bool EndsInJson(std::string_view text) { return text.size() > 5 && text.ends_with(".json"); }

std::string Shown(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string shown;
  for (char c : text.substr(0, kMost)) {
    if (c >= 0x20 && c < 0x7f)
      shown += c;
    else
      shown += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return text.size() > kMost ? shown + "..." : shown;
}

Result<SyntaxNode> ParseSyntax(std::string_view text) {
  if (text.size() > kMaxExpressionLength)
    return InvalidArgument(fmt::format("an expression of {} characters: at most {} are accepted",
                                       text.size(), kMaxExpressionLength));
  const std::string_view trimmed = Trim(text);
  const bool has_control = std::any_of(trimmed.begin(), trimmed.end(), IsControl);
  if (EndsInJson(trimmed) && !has_control) {
    SyntaxNode node{.kind = SyntaxNode::Kind::kPath};
    node.text = trimmed;
    return node;
  }
  return Parser(text).ParseWhole();
}

}  // namespace tutti::topo
