// --html F: the page (tutti/page/page.h) that a command writes beside what it prints.
#pragma once

#include <string>
#include <vector>

#include "common.h"
#include "tutti/page/page.h"

namespace tutti::cli {

class HtmlFlag {
 public:
  void AddTo(Command command);
  // Whether the user asks for a page.
  bool given() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // kInvalidArgument: the page would replace an input, or what is written beside it.
  Status Check(const std::vector<std::string>& inputs, const std::string& other_output) const;
  // kInvalidArgument where it was given, for `what` that no page shows.
  Status Refuse(const std::string& what) const;
  // Whole or not at all. Nothing to do where it was not given.
  Status Write(const PageData& data) const;
  // "page in F: ..." for people; empty where it was not given.
  std::string Text() const;

 private:
  std::string path_;
};

// Whole or not at all.
Status WritePage(const std::string& path, const PageData& data);

// Simulates the schedule and adds it with its network to the page. What cannot be simulated is
// shown without times, with the reason. kCancelled.
Status AddToPage(PageData& data, const Topology& topology, const Schedule& schedule,
                 PageSchedule facts);
// The violations of a proof.
void AddVerdict(const VerifyReport& report, PageSchedule& facts);

}  // namespace tutti::cli
