// Command lines: commands, their options, and what a parsed line says. The library behind it
// (CLI11) is seen by flags.cc alone, for a file that includes it takes seconds longer to compile.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tutti::cli {

// An option, flag or positional argument: a handle, valid as long as its CommandLine.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required();
  Option ShowDefault();  // in help: what the variable holds now
  Option Within(int least, int most);
  Option WithinReal(double least, double most);  // finite numbers
  Option OneOf(std::vector<std::string> words);
  // `fault` says what is wrong with a value: nothing where it is fine.
  Option Check(std::function<std::string(const std::string&)> fault);
  Option Transform(std::function<std::string(const std::string&)> change);
  Option Needs(const std::string& other);
  Option SeparatedBy(char separator);
  Option TypeName(const std::string& name);  // in help

 private:
  CLI::Option* option_;
};

// What help, man pages and completion say of an option.
struct OptionInfo {
  std::string spelling;  // "-o,--output", or "topology" of a positional argument
  std::vector<std::string> short_names, long_names;  // without dashes
  std::string description, default_text;
  std::vector<std::string> words;  // the only values it takes; empty: others
  bool positional = false, required = false, takes_value = false;
};

// A command or subcommand: a handle, valid as long as its CommandLine.
class Command {
 public:
  Command(CLI::App* app, std::function<int()>* action) : app_(app), action_(action) {}

  // Subcommands that stand alone do something; one that has subcommands needs one of them.
  Command AddCommand(const std::string& name, const std::string& description);
  void NeedsSubcommand();
  // T: int32_t (or optional), int64_t, uint64_t, double, std::string, vectors of int32_t and
  // string.
  template <class T>
  Option AddOption(const std::string& names, T& variable, const std::string& description);
  Option AddFlag(const std::string& names, bool& variable, const std::string& description);
  // Makes it the action of the CommandLine where the command was named.
  void Runs(std::function<int()> run);
  void SetFooter(const std::string& footer);

  // What help says.
  std::string name() const;
  std::string description() const;
  std::string footer() const;
  std::vector<Command> Subcommands() const;
  std::vector<OptionInfo> Options() const;

  // What the parsed line says.
  bool Has(const std::string& option) const;  // given
  std::optional<std::string> ValueOf(
      const std::string& option) const;  // the last; nothing: not given

 private:
  CLI::App* app_;
  std::function<int()>* action_;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command root();
  // The root does something itself; there are no commands.
  void NeedsNoCommand();
  // Text to print and be done (help, version), or nothing: action() is set. kInvalidArgument in one
  // line, with the command whose help tells more.
  Result<std::string> Parse(int argc, char** argv);
  const std::function<int()>& action() const { return action_; }
  // The command that was named last: "topo show" of "tutti topo show".
  Command Innermost();

 private:
  std::unique_ptr<CLI::App> app_;
  std::function<int()> action_;
};

}  // namespace tutti::cli
