#include "table.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace tutti::nccl_tuner {
namespace {

// By the numbers that NCCL gives them.
constexpr std::array<std::string_view, kNumFunctions> kFunctions{"broadcast", "reduce", "allgather",
                                                                 "reducescatter", "allreduce"};
constexpr std::array<std::string_view, kNumAlgorithms> kAlgorithms{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, kNumProtocols> kProtocols{"ll", "ll128", "simple"};
constexpr std::string_view kHeader = "tutti-nccl-table", kVersion = "1", kEnd = "end", kAny = "*";
constexpr size_t kWordsOfRow = 8;
constexpr uint64_t kMostBytes = std::numeric_limits<uint64_t>::max();

std::vector<std::string_view> WordsOf(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  constexpr std::string_view kBlank = " \t\r";
  for (;;) {
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlank), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::string Quoted(std::string_view word) {
  constexpr size_t kMost = 40;
  std::string text = "'";
  for (char c : word.substr(0, kMost)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (word.size() > kMost ? "...'" : "'");
}

// One row; what is wrong with it, or nothing.
class RowReader {
 public:
  explicit RowReader(std::span<const std::string_view> words) : words_(words) {}

  std::string Read(Row& row) {
    if (words_.size() != kWordsOfRow)
      return "a row has " + std::to_string(kWordsOfRow) + " words (" +
             "collective ranks nodes from to algorithm protocol channels), this one has " +
             std::to_string(words_.size());
    row.function = Named("collective", 0, kFunctions, false);
    row.ranks = Number("ranks", 1, 1, kMostBytes, 0);
    row.nodes = Number("nodes", 2, 1, kMostBytes, 0);
    row.from = Number("from", 3, 0, kMostBytes, std::nullopt);
    row.to = Number("to", 4, 0, kMostBytes, kMostBytes);
    row.choice.algorithm = Named("algorithm", 5, kAlgorithms, false);
    row.choice.protocol = Named("protocol", 6, kProtocols, true);
    row.choice.channels = static_cast<int32_t>(Number("channels", 7, 1, kMaxNcclChannels, 0));
    if (fault_.empty() && row.from > row.to)
      fault_ = "the range from " + std::string(words_[3]) + " to " + std::string(words_[4]) +
               " is empty";
    return fault_;
  }

 private:
  int16_t Named(const char* what, size_t at, std::span<const std::string_view> names,
                bool may_be_any) {
    if (may_be_any && words_[at] == kAny) return -1;
    std::string accepted = may_be_any ? std::string(kAny) : "";
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == words_[at]) return static_cast<int16_t>(i);
      accepted += (accepted.empty() ? "" : " ") + std::string(names[i]);
    }
    Fail(what, at, "accepted are " + accepted);
    return -1;
  }

  // any: what `*` stands for; nothing: it is not accepted.
  uint64_t Number(const char* what, size_t at, uint64_t least, uint64_t most,
                  std::optional<uint64_t> any) {
    const std::string_view word = words_[at];
    if (any && word == kAny) return *any;
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc() && stop == word.data() + word.size() && value >= least &&
        value <= most)
      return value;
    Fail(what, at,
         "accepted are whole numbers from " + std::to_string(least) +
             (most == kMostBytes ? "" : " to " + std::to_string(most)) + (any ? " and *" : ""));
    return 0;
  }

  void Fail(const char* what, size_t at, const std::string& accepted) {
    if (fault_.empty())
      fault_ = std::string("unknown ") + what + " " + Quoted(words_[at]) + "; " + accepted;
  }

  std::span<const std::string_view> words_;
  std::string fault_;
};

// Line by line; what is wrong, or nothing.
class TableReader {
 public:
  std::string Add(std::string_view line) {
    if (line.size() > kMaxLineLength)
      return "a line has at most " + std::to_string(kMaxLineLength) + " characters";
    const std::vector<std::string_view> words = WordsOf(line);
    if (words.empty()) return {};
    if (ended_) return "nothing may follow the line 'end'";
    if (!begun_) return Begin(words);
    if (words.size() == 1 && words[0] == kEnd) {
      ended_ = true;
      return {};
    }
    if (rows_.size() == kMaxRows)
      return "a table has at most " + std::to_string(kMaxRows) + " rows";
    return RowReader(words).Read(rows_.emplace_back());
  }

  std::string Finish() const {
    if (!begun_) return "no table: the first line is '" + Header() + "'";
    return ended_ ? "" : "the table is cut off: its last line is 'end'";
  }
  std::vector<Row>&& TakeRows() { return std::move(rows_); }

 private:
  static std::string Header() { return std::string(kHeader) + " " + std::string(kVersion); }

  std::string Begin(const std::vector<std::string_view>& words) {
    if (words.size() != 2 || words[0] != kHeader)
      return "no table: the first line is '" + Header() + "'";
    if (words[1] != kVersion)
      return "unknown version " + Quoted(words[1]) + "; this plug-in reads " +
             std::string(kVersion);
    begun_ = true;
    return {};
  }

  std::vector<Row> rows_;
  bool begun_ = false, ended_ = false;
};

}  // namespace

ReadTable ParseTable(std::string_view text) {
  if (text.size() > kMaxTableBytes)
    return {{}, 1, "a table has at most " + std::to_string(kMaxTableBytes) + " bytes"};
  TableReader reader;
  int line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    if (std::string fault = reader.Add(text.substr(0, end)); !fault.empty())
      return {{}, line, std::move(fault)};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (std::string fault = reader.Finish(); !fault.empty())
    return {{}, std::max(line, 1), std::move(fault)};
  return {reader.TakeRows(), 0, {}};
}

Decisions::Decisions(const std::vector<Row>& rows, uint64_t ranks, uint64_t nodes) {
  for (int function = 0; function < kNumFunctions; ++function) {
    // Where rows begin and where they have ended, in order of size; of those open the first counts.
    std::vector<std::tuple<uint64_t, bool, size_t>> events;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Row& row = rows[i];
      const bool fits = row.function == function && (row.ranks == 0 || row.ranks == ranks) &&
                        (row.nodes == 0 || row.nodes == nodes);
      if (!fits) continue;
      events.emplace_back(row.from, true, i);
      if (row.to != kMostBytes) events.emplace_back(row.to + 1, false, i);
    }
    std::sort(events.begin(), events.end());
    std::vector<size_t> open;  // ascending
    std::vector<Range>& ranges = ranges_[static_cast<size_t>(function)];
    for (size_t i = 0; i < events.size(); ++i) {
      const auto& [at, begins, row] = events[i];
      const auto place = std::lower_bound(open.begin(), open.end(), row);
      if (begins)
        open.insert(place, row);
      else
        open.erase(place);
      if (i + 1 < events.size() && std::get<0>(events[i + 1]) == at) continue;
      const Choice choice = open.empty() ? Choice() : rows[open.front()].choice;
      const Choice before = ranges.empty() ? Choice() : ranges.back().choice;
      if (choice != before) ranges.push_back({at, choice});
    }
  }
}

size_t Decisions::num_ranges() const {
  size_t count = 0;
  for (const std::vector<Range>& ranges : ranges_) count += ranges.size();
  return count;
}

}  // namespace tutti::nccl_tuner
