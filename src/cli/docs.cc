// tutti docs: man pages, the reference page and shell completion, made from the flags themselves.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "common.h"
#include "tutti/base/file.h"

namespace tutti::cli {
namespace {

struct Page {
  std::string path;  // "topo show"
  const CLI::App* app;
};

// Every command that does something, depth first.
void Collect(const CLI::App* app, const std::string& path, std::vector<Page>& pages) {
  const auto subcommands = app->get_subcommands([](const CLI::App*) { return true; });
  if (subcommands.empty()) pages.push_back({path, app});
  for (const CLI::App* sub : subcommands)
    Collect(sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), pages);
}

std::vector<Page> AllPages(const CLI::App& app) {
  std::vector<Page> pages;
  Collect(&app, "", pages);
  return pages;
}

// "-o,--output", or "TOPOLOGY" for a positional argument.
std::string Spelling(const CLI::Option& option) {
  if (!option.get_positional()) return option.get_name(false, true);
  std::string name = option.get_name(true, false);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<const CLI::Option*> Options(const CLI::App* app, bool positional) {
  std::vector<const CLI::Option*> chosen;
  for (const CLI::Option* option : app->get_options())
    if (option->get_positional() == positional) chosen.push_back(option);
  return chosen;
}

std::string Synopsis(const Page& page) {
  std::string text = "tutti " + page.path;
  for (const CLI::Option* option : Options(page.app, true)) text += " " + Spelling(*option);
  return text + " [OPTION...]";
}

std::string Description(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_default_str().empty())
    text += fmt::format(" (default: {})", option.get_default_str());
  if (option.get_required() && !option.get_positional()) text += " (required)";
  return text;
}

std::string Roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\')
      out += "\\e";
    else if (text[i] == '-')
      out += "\\-";
    else
      out += text[i];
  }
  return out;
}

std::string FileName(std::string path) {
  for (char& c : path)
    if (c == ' ') c = '-';
  return path;
}

std::string ManPage(const Page& page) {
  std::string text = fmt::format(".TH TUTTI-{} 1 \"\" \"tutti {}\" \"Tutti manual\"\n",
                                 FileName(page.path), TUTTI_VERSION);
  text += fmt::format(".SH NAME\ntutti\\-{} \\- {}\n", Roff(FileName(page.path)),
                      Roff(page.app->get_description()));
  text += fmt::format(".SH SYNOPSIS\n{}\n.SH ARGUMENTS AND OPTIONS\n", Roff(Synopsis(page)));
  for (bool positional : {true, false})
    for (const CLI::Option* option : Options(page.app, positional))
      text +=
          fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(Spelling(*option)), Roff(Description(*option)));
  text += fmt::format(
      ".SH EXIT STATUS\n0 done; 1 the answer is no (not correct, infeasible); 2 bad "
      "input; 130 interrupted.\n.SH EXAMPLE\n.nf\n{}\n.fi\n",
      Roff(page.app->get_footer()));
  return text;
}

std::string Index(const std::vector<Page>& pages) {
  std::string text = fmt::format(
      ".TH TUTTI 1 \"\" \"tutti {}\" \"Tutti manual\"\n.SH NAME\ntutti \\- collective "
      "communication "
      "that knows its network\n.SH SYNOPSIS\ntutti COMMAND [OPTION...]\n.SH COMMANDS\n",
      TUTTI_VERSION);
  for (const Page& page : pages)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}. See tutti\\-{}(1).\n", Roff(page.path),
                        Roff(page.app->get_description()), Roff(FileName(page.path)));
  return text;
}

Status WriteManPages(const CLI::App& app, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: cannot create the folder: {}", folder, error.message()));
  const std::vector<Page> pages = AllPages(app);
  for (const Page& page : pages)
    if (Status written = WriteFileAtomically(
            fmt::format("{}/tutti-{}.1", folder, FileName(page.path)), ManPage(page));
        !written)
      return written;
  return WriteFileAtomically(folder + "/tutti.1", Index(pages));
}

std::string Reference(const CLI::App& app) {
  std::string text =
      "# Every command\n\nMade by `tutti docs reference`; do not edit. Exit codes: 0 done, 1 the "
      "answer is no (not correct, infeasible), 2 bad input, 130 interrupted.\n";
  for (const Page& page : AllPages(app)) {
    text += fmt::format("\n## tutti {}\n\n{}.\n\n```\n{}\n```\n\n| | |\n|---|---|\n", page.path,
                        page.app->get_description(), Synopsis(page));
    for (bool positional : {true, false})
      for (const CLI::Option* option : Options(page.app, positional))
        text += fmt::format("| `{}` | {} |\n", Spelling(*option), Description(*option));
    text += fmt::format("\n{}\n", page.app->get_footer());
  }
  return text;
}

// The words that may follow each command path.
std::string BashCompletion(const CLI::App& app) {
  std::string cases;
  std::vector<std::pair<std::string, const CLI::App*>> todo{{"tutti", &app}};
  while (!todo.empty()) {
    const auto [path, command] = todo.back();
    todo.pop_back();
    std::string words;
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; })) {
      words += sub->get_name() + " ";
      todo.emplace_back(path + " " + sub->get_name(), sub);
    }
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    cases += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, words);
  }
  return "# bash completion of tutti; in zsh first: autoload -U bashcompinit && bashcompinit\n"
         "_tutti() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} path=tutti words= i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    case ${COMP_WORDS[i]} in\n"
         "      -*) break ;;\n"
         "      *) path+=\" ${COMP_WORDS[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  while [ -n \"$path\" ]; do\n"
         "    case $path in\n" +
         cases +
         "    *) case $path in *\" \"*) path=${path% *}; continue ;; esac ;;\n"
         "    esac\n"
         "    break\n"
         "  done\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "}\n"
         "complete -F _tutti tutti\n";
}

}  // namespace

void AddDocs(Program& program) {
  CLI::App* docs = program.app.add_subcommand(
      "docs", "Man pages, the reference of every command and shell completion");
  docs->require_subcommand(1);
  auto folder = std::make_shared<std::string>();
  CLI::App* man = program.AddCommand(docs, "man", "Write the man pages into a folder",
                                     "tutti docs man -o ~/.local/share/man/man1");
  man->add_option("-o,--output", *folder, "Folder for the pages")->required();
  man->callback([&program, folder] {
    program.action = [&program, folder] {
      const Status written = WriteManPages(program.app, *folder);
      return written ? kDone : Report(written.error());
    };
  });
  const auto add_text = [&program, docs](const char* name, const char* description,
                                         std::string (*make)(const CLI::App&)) {
    program.AddCommand(docs, name, description, fmt::format("tutti docs {} > FILE", name))
        ->callback([&program, make] {
          program.action = [&program, make] {
            fmt::print("{}", make(program.app));
            return kDone;
          };
        });
  };
  add_text("reference", "Print the reference of every command as Markdown", Reference);
  add_text("completion", "Print the completion script for bash and zsh", BashCompletion);
}

}  // namespace tutti::cli
