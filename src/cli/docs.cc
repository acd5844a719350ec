// tutti docs: man pages, the reference page and shell completion, made from the flags themselves.
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "common.h"
#include "completion.h"
#include "tutti/base/file.h"

namespace tutti::cli {
namespace {

constexpr const char* kExitCodes =
    "0 done; 1 the answer is no (not correct, infeasible); 2 bad input, or the output cannot be "
    "written; 130 interrupted by Ctrl-C, 143 ended by SIGTERM, 141 the reader of the output has "
    "gone (head).";
constexpr const char* kUnits =
    "Sizes are bytes: 64MiB and 64M are 64 x 2^20 (a bare letter is binary, as in nccl-tests), "
    "64MB "
    "is 64 x 10^6. Bandwidths are bytes a second, 50GB/s, or bits, 400Gbit/s, 400Gb/s or 400Gbps: "
    "GB is 10^9 bytes, GiB 2^30 bytes, Gb 10^9 bits. Times are 0.5us, 700ns or 2ms. Where it may "
    "be "
    "either bits or bytes (64Mb as a size, 50gb/s) both readings are named and nothing is done. A "
    "blank may stand before the unit: '50 GB/s'.";

// What programs and commands read of the environment.
struct Variable {
  const char* names;  // separated by blanks
  const char* description;
};
constexpr Variable kVariables[] = {
    {.names = "TUTTI_SCHEDULES",
     .description = "Folder with the schedule library of communicators"},
    {.names = "TUTTI_HOST",
     .description =
         "Address of this host, or its name, at which ranks reach the one that makes a unique id"},
    {.names = "TUTTI_SHARED_MEMORY", .description = "0: ranks of one host talk over TCP, too"},
    {.names = "TUTTI_FIXED_ORDER",
     .description = "1: communicators reduce in one order wherever the ranks are"},
    {.names = "TUTTI_SILENCE",
     .description =
         "Seconds after which a silent process ends a communicator (default: 10), 0: never"},
    {.names = "TUTTI_TCP_CONGESTION",
     .description =
         "TCP congestion control of connections between ranks, as the kernel names it: cubic"},
    {.names = "TUTTI_SERVICE",
     .description = "Socket of the daemon that runs a program's collectives"},
    {.names = "TUTTI_SERVICE_TOKEN", .description = "Who the program is, where the daemon asks"},
    {.names = "TUTTI_SECRET",
     .description = "Of 'tutti run' with --transport tcp: the job's secret, 32 hexadecimal digits"},
    {.names = "TUTTI_ALLTOALLV",
     .description =
         "Of MPI programs that preload libtutti_mpi.so: the algorithm of MPI_Alltoallv and "
         "MPI_Alltoall, auto (the default) or an algorithm (docs/guide/mpi.md)"},
    {.names = "TUTTI_ALLREDUCE TUTTI_ALLGATHER TUTTI_ALLGATHERV TUTTI_REDUCE_SCATTER "
              "TUTTI_REDUCE_SCATTER_BLOCK TUTTI_BCAST TUTTI_REDUCE TUTTI_GATHER TUTTI_SCATTER "
              "TUTTI_BARRIER",
     .description =
         "Of the same programs: who serves the MPI function of that name, auto (the default: what "
         "is "
         "measured to be faster), native (the MPI library) or shared (shared memory of a node)"},
    {.names = "TUTTI_REORDER",
     .description =
         "1: floating-point reductions of these may take another order than the MPI library's"},
    {.names = "TUTTI_VERBOSE",
     .description = "1: rank 0 reports at the end what was served how; 2: every rank does"},
    {.names = "TUTTI_CHECK",
     .description = "1: counts are compared between ranks before each exchange"},
    {.names = "TUTTI_TEMPORARY_LIMIT",
     .description = "Bytes a rank: calls that may need more beside the program's buffers go to the "
                    "MPI library"},
    {.names = "TUTTI_HOST_BUFFERS", .description = "1: no buffer lies in an accelerator's memory"},
    {.names = "TUTTI_RANKS_PER_NODE",
     .description = "8, or 4,32 for two levels: groups of consecutive ranks in place of the nodes "
                    "that are found"},
    {.names = "TUTTI_MPI_FILE",
     .description =
         "File of what was measured on this cluster (default: tutti/mpi in XDG_CONFIG_HOME or "
         "~/.config)"},
    {.names = "TUTTI_NCCL_TABLE", .description = "Table of the tuner plug-in that NCCL loads"},
};

struct Page {
  std::string path;  // "topo show"
  Command command;
};

// Every command that does something, depth first.
void Collect(const Command& command, const std::string& path, std::vector<Page>& pages) {
  const std::vector<Command> subcommands = command.Subcommands();
  if (subcommands.empty()) pages.push_back({path, command});
  for (const Command& sub : subcommands)
    Collect(sub, path.empty() ? sub.name() : path + " " + sub.name(), pages);
}

std::vector<Page> AllPages(const Command& root) {
  std::vector<Page> pages;
  Collect(root, "", pages);
  return pages;
}

// "-o,--output", or "TOPOLOGY" for a positional argument.
std::string Spelling(const OptionInfo& option) {
  std::string name = option.spelling;
  if (option.positional)
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<OptionInfo> Options(const Command& command, bool positional) {
  std::vector<OptionInfo> options = command.Options();
  std::erase_if(options, [=](const OptionInfo& option) { return option.positional != positional; });
  return options;
}

std::string Synopsis(const Page& page) {
  std::string text = "tutti " + page.path;
  for (const OptionInfo& option : Options(page.command, true)) text += " " + Spelling(option);
  return text + " [OPTION...]";
}

std::string Description(const OptionInfo& option) {
  std::string text = option.description;
  if (!option.default_text.empty()) text += fmt::format(" (default: {})", option.default_text);
  if (option.required && !option.positional) text += " (required)";
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
                      Roff(page.command.description()));
  text += fmt::format(".SH SYNOPSIS\n{}\n.SH ARGUMENTS AND OPTIONS\n", Roff(Synopsis(page)));
  for (bool positional : {true, false})
    for (const OptionInfo& option : Options(page.command, positional))
      text +=
          fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(Spelling(option)), Roff(Description(option)));
  text += fmt::format(".SH EXIT STATUS\n{}\n.SH EXAMPLE\n.nf\n{}\n.fi\n", Roff(kExitCodes),
                      Roff(page.command.footer()));
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
                        Roff(page.command.description()), Roff(FileName(page.path)));
  text += ".SH ENVIRONMENT\n";
  for (const Variable& variable : kVariables)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", Roff(variable.names), Roff(variable.description));
  return text;
}

Status WriteManPages(const Command& root, const std::string& folder) {
  // As every -o: what the last name stands in must be there, or a misspelt path makes folders.
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  if (error)
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: cannot create the folder: {}", folder, error.message()));
  const std::vector<Page> pages = AllPages(root);
  for (const Page& page : pages)
    if (Status written = WriteFileAtomically(
            fmt::format("{}/tutti-{}.1", folder, FileName(page.path)), ManPage(page));
        !written)
      return written;
  return WriteFileAtomically(folder + "/tutti.1", Index(pages));
}

std::string Reference(const Command& root) {
  std::string text = "# Every command\n\nMade by `tutti docs reference`; do not edit. Exit codes: ";
  text += kExitCodes;
  text += fmt::format("\n\n{}\n", kUnits);
  for (const Page& page : AllPages(root)) {
    text += fmt::format("\n## tutti {}\n\n{}.\n\n```\n{}\n```\n\n| | |\n|---|---|\n", page.path,
                        page.command.description(), Synopsis(page));
    for (bool positional : {true, false})
      for (const OptionInfo& option : Options(page.command, positional))
        text += fmt::format("| `{}` | {} |\n", Spelling(option), Description(option));
    text += fmt::format("\n{}\n", page.command.footer());
  }
  text += "\n## Environment\n\n| | |\n|---|---|\n";
  for (const Variable& variable : kVariables) {
    std::string names = variable.names;
    for (size_t at = 0; (at = names.find(' ', at)) != std::string::npos; at += 3)
      names.replace(at, 1, "` `");
    text += fmt::format("| `{}` | {} |\n", names, variable.description);
  }
  return text;
}

}  // namespace

void AddDocs(Program& program) {
  Command docs = program.line.root().AddCommand(
      "docs", "Man pages, the reference of every command and shell completion");
  docs.NeedsSubcommand();
  auto folder = std::make_shared<std::string>();
  Command man = program.AddCommand(docs, "man", "Write the man pages into a folder",
                                   "tutti docs man -o ~/.local/share/man/man1");
  man.AddOption("-o,--output", *folder,
                "Folder for the pages; made where the one above it is there")
      .Required();
  man.Runs([&program, folder] {
    const Status written = WriteManPages(program.line.root(), *folder);
    return written ? kDone : Report(written.error());
  });
  const auto add_text = [&program, docs](const char* name, const char* description,
                                         std::string (*make)(const Command&)) {
    program.AddCommand(docs, name, description, fmt::format("tutti docs {} > FILE", name))
        .Runs([&program, make] {
          fmt::print("{}", make(program.line.root()));
          return kDone;
        });
  };
  add_text("reference", "Print the reference of every command as Markdown", Reference);
  add_text("completion", "Print the completion script for bash and zsh", BashCompletion);
}

}  // namespace tutti::cli
