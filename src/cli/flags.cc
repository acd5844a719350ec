#include "flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/nearest.h"

namespace tutti::cli {
namespace {

std::vector<CLI::App*> SubcommandsOf(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// "{held,pipelined}", as CLI::IsMember describes itself.
std::vector<std::string> WordsOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open == type.npos || close == type.npos || close < open) return {};
  std::vector<std::string> words;
  for (const std::string& word : CLI::detail::split(type.substr(open + 1, close - open - 1), ','))
    words.push_back(CLI::detail::trim_copy(word));
  return words;
}

// CLI11 says only that a subcommand is missing; people want to know that theirs is misspelt.
std::string FaultOfCommandName(CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-' || app.get_require_subcommand_min() == 0) return {};
  std::string names;
  for (const CLI::App* command : SubcommandsOf(app)) {
    if (command->get_name() == argv[1]) return {};
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return fmt::format("unknown command '{}'; accepted are {}", argv[1], names);
}

CLI::App* InnermostOf(CLI::App& app) {
  CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

// Nothing: all arguments are the command's. CLI11 names them all, from the last to the first, and only where nothing that is
// required is missing, as it is where its option is misspelt.
std::string FaultOfArguments(CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return {};
  const std::string name = unknown.front().substr(0, unknown.front().find('='));
  if (!name.starts_with('-')) return fmt::format("unexpected argument '{}'", unknown.front());
  std::vector<std::string> options;
  for (const CLI::Option* option : InnermostOf(app)->get_options())
    for (const std::string& accepted : option->get_lnames()) options.push_back("--" + accepted);
  const std::vector<std::string_view> accepted(options.begin(), options.end());
  return fmt::format("unknown option '{}'{}", name,
                     name.starts_with("--") ? NearestHint(name, accepted) : "");
}

// One line, for the help of which command: CLI11's words may take several.
std::string TextOf(CLI::App& app, const CLI::ParseError& error) {
  std::string message = FaultOfArguments(app);
  if (message.empty()) message = error.what();
  for (char& c : message)
    if (c == '\n') c = ' ';
  while (message.ends_with(' ')) message.pop_back();
  std::string command = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  return fmt::format("{}; see '{} --help'", message, command);
}

}  // namespace

Option Option::Required() {
  option_->required();
  return *this;
}

Option Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

Option Option::Within(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::WithinReal(double least, double most) {
  const std::string range = fmt::format("{:.10g} .. {:.10g}", least, most);
  option_->check(CLI::Validator(
      [least, most, range](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool fits = !text.empty() && *end == '\0' && value >= least && value <= most;
        return fits ? std::string() : fmt::format("got '{}', wanted {}", text, range);
      },
      range));
  return *this;
}

Option Option::OneOf(std::vector<std::string> words) {
  option_->check(CLI::IsMember(std::move(words)));
  return *this;
}

Option Option::Check(std::function<std::string(const std::string&)> fault) {
  option_->check(std::move(fault));
  return *this;
}

Option Option::Transform(std::function<std::string(const std::string&)> change) {
  option_->transform(std::move(change));
  return *this;
}

Option Option::Needs(const std::string& other) {
  option_->needs(other);
  return *this;
}

Option Option::SeparatedBy(char separator) {
  option_->delimiter(separator);
  return *this;
}

Option Option::TypeName(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Command Command::AddCommand(const std::string& name, const std::string& description) {
  return {app_->add_subcommand(name, description), action_};
}

void Command::NeedsSubcommand() { app_->require_subcommand(1); }

template <class T>
Option Command::AddOption(const std::string& names, T& variable, const std::string& description) {
  return Option(app_->add_option(names, variable, description));
}
template Option Command::AddOption(const std::string&, int32_t&, const std::string&);
template Option Command::AddOption(const std::string&, int64_t&, const std::string&);
template Option Command::AddOption(const std::string&, std::optional<int32_t>&, const std::string&);
template Option Command::AddOption(const std::string&, uint64_t&, const std::string&);
template Option Command::AddOption(const std::string&, double&, const std::string&);
template Option Command::AddOption(const std::string&, std::string&, const std::string&);
template Option Command::AddOption(const std::string&, std::vector<int32_t>&, const std::string&);
template Option Command::AddOption(const std::string&, std::vector<std::string>&,
                                   const std::string&);

Option Command::AddFlag(const std::string& names, bool& variable, const std::string& description) {
  return Option(app_->add_flag(names, variable, description));
}

void Command::Runs(std::function<int()> run) {
  app_->callback([action = action_, run = std::move(run)] { *action = run; });
}

void Command::SetFooter(const std::string& footer) { app_->footer(footer); }

std::string Command::name() const { return app_->get_name(); }
std::string Command::description() const { return app_->get_description(); }
std::string Command::footer() const { return app_->get_footer(); }

std::vector<Command> Command::Subcommands() const {
  std::vector<Command> commands;
  for (CLI::App* sub : SubcommandsOf(*app_)) commands.emplace_back(sub, action_);
  return commands;
}

std::vector<OptionInfo> Command::Options() const {
  std::vector<OptionInfo> options;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    const bool positional = option->get_positional();
    options.push_back({.spelling = option->get_name(positional, !positional),
                       .short_names = option->get_snames(),
                       .long_names = option->get_lnames(),
                       .description = option->get_description(),
                       .default_text = option->get_default_str(),
                       .words = WordsOf(*option),
                       .positional = positional,
                       .required = option->get_required(),
                       .takes_value = option->get_items_expected_max() > 0});
  }
  return options;
}

bool Command::Has(const std::string& option) const { return app_->count(option) > 0; }

std::optional<std::string> Command::ValueOf(const std::string& option) const {
  const CLI::Option* found = std::as_const(*app_).get_option_no_throw(option);
  if (found == nullptr || found->count() == 0) return std::nullopt;
  return found->results().back();
}

CommandLine::CommandLine(const std::string& name, const std::string& description,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
  app_->fallthrough(false);
}

CommandLine::~CommandLine() = default;

Command CommandLine::root() { return {app_.get(), &action_}; }

void CommandLine::NeedsNoCommand() { app_->require_subcommand(0); }

Result<std::string> CommandLine::Parse(int argc, char** argv) {
  if (const std::string fault = FaultOfCommandName(*app_, argc, argv); !fault.empty())
    return InvalidArgument(fault);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return InvalidArgument(TextOf(*app_, error));
    std::ostringstream text;  // --help, --version
    app_->exit(error, text, text);
    return text.str();
  }
  return std::string();
}

Command CommandLine::Innermost() { return {InnermostOf(*app_), &action_}; }

}  // namespace tutti::cli
