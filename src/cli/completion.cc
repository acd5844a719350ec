#include "completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/coll/collective.h"
#include "tutti/route/layers.h"
#include "tutti/route/router.h"
#include "tutti/runtime/executor.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/synth/ten.h"
#include "tutti/topo/expression.h"
#include "tutti/training/training_workload.h"

namespace tutti::cli {
namespace {

using Words = std::vector<std::string>;

template <class Range>
void AddNames(const Range& range, Words& words) {
  for (const auto& one : range) words.emplace_back(one.name);
}

Words Collectives() {
  Words words;
  for (int kind = 0; kind <= static_cast<int>(CollectiveKind::kAllToAllV); ++kind)
    words.emplace_back(Name(static_cast<CollectiveKind>(kind)));
  return words;
}

Words Algorithms(bool routers) {
  Words words{"auto"};
  AddNames(Synthesizers(), words);
  if (routers) AddNames(Routers(), words);
  return words;
}

// What `option` of the command `path` may be; empty where that is a number, a size or a file.
Words ValuesOf(const std::string& path, const OptionInfo& option) {
  if (!option.words.empty()) return option.words;
  const auto is = [&option](const char* name) {
    return std::ranges::count(option.long_names, name) > 0 ||
           (option.positional && option.spelling == name);
  };
  Words words;
  if (is("collective")) words = Collectives();
  if (is("algorithm") || is("algorithms")) words = Algorithms(path != "tutti train");
  if (is("topology")) AddNames(TopologyFamilies(), words);
  if (is("policy")) AddNames(TenPolicies(), words);
  if (is("layering")) AddNames(Layerings(), words);
  if (is("unwind")) words = {"auto"};
  if (is("dialect")) words = {"msccl", "executor-nccl", "rccl"};
  if (is("mpi")) words = {"openmpi", "mpich", "smpi"};
  if (is("type")) words = {"float", "double", "half", "bfloat16", "int32", "int64", "uint8"};
  if (is("op"))
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kAvg})
      words.emplace_back(Name(op));
  if (is("workload"))
    for (const std::string_view name : BuiltInWorkloads()) words.emplace_back(name);
  // Asked when it is wanted: they are another program's.
  if (is("name") && path == "tutti bench")
    words = {"$(${COMP_WORDS[0]} bench 2>/dev/null | sed -n 's/^\\([a-z]*-[a-z0-9]*\\) .*/\\1/p')"};
  return words;
}

// The cases of the script, command by command.
struct Cases {
  std::string commands;  // patterns of all paths
  std::string words;     // what may stand at each path: subcommands and positional values
  std::string options;   // and its options
  std::string values;    // what may follow an option: a list, or nothing for what is no list
};

void AddOption(const std::string& path, const OptionInfo& option, Cases& cases) {
  if (!option.takes_value) return;
  std::string pattern;
  for (const std::string& name : option.short_names)
    pattern += fmt::format("{}\"{} -{}\"", pattern.empty() ? "" : "|", path, name);
  for (const std::string& name : option.long_names)
    pattern += fmt::format("{}\"{} --{}\"", pattern.empty() ? "" : "|", path, name);
  cases.values += fmt::format("    {}) known=1 values=\"{}\" ;;\n", pattern,
                              fmt::join(ValuesOf(path, option), " "));
}

void AddCommand(const std::string& path, const Command& command, Cases& cases) {
  Words words, options;
  for (const Command& sub : command.Subcommands()) {
    words.push_back(sub.name());
    const std::string inner = path + " " + sub.name();
    cases.commands += fmt::format("{}\"{}\"", cases.commands.empty() ? "" : "|", inner);
    AddCommand(inner, sub, cases);
  }
  for (const OptionInfo& option : command.Options()) {
    for (const std::string& name : option.long_names) options.push_back("--" + name);
    if (!option.positional) {
      AddOption(path, option, cases);
      continue;
    }
    const Words values = ValuesOf(path, option);
    words.insert(words.end(), values.begin(), values.end());
  }
  cases.words += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, fmt::join(words, " "));
  cases.options += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, fmt::join(options, " "));
}

}  // namespace

std::string BashCompletion(const Command& root) {
  Cases cases;
  AddCommand("tutti", root, cases);
  return fmt::format(
      R"(# bash completion of tutti; in zsh first: autoload -U bashcompinit && bashcompinit
_tutti() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path=tutti
  local words= values= known= head= i
  # --option=value comes as three words.
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ] && [ "$COMP_CWORD" -gt 2 ]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
    {0}) path+=" ${{COMP_WORDS[i]}}" ;;
    *) break ;;
    esac
  done
  case "$path $before" in
{1}  esac
  COMPREPLY=()
  if [ -n "$known" ]; then
    case $word in *,*) head=${{word%,*}}, ;; esac
    [ -z "$values" ] || COMPREPLY=($(compgen -P "$head" -W "$values" -- "${{word#"$head"}}"))
    return
  fi
  case $word in
  -*)
    case $path in
{2}    esac ;;
  *)
    case $path in
{3}    esac
    [ -z "$word" ] || COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
  COMPREPLY+=($(compgen -W "$words" -- "$word"))
}}
# Where nothing is known a file is meant.
complete -o default -F _tutti tutti
)",
      cases.commands, cases.values, cases.options, cases.words);
}

}  // namespace tutti::cli
