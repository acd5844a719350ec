// Whole files, read and written safely.
// Errors  kIo with the path and the operating system's words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tutti/base/leftovers.h"
#include "tutti/base/result.h"

namespace tutti {

Result<std::string> ReadFile(const std::string& path);
// Writes to a temporary name beside `path`, syncs and renames: readers see the old file or the new
// one. On failure (also a full disk) the temporary file is removed. Nothing is renamed once the
// user has interrupted: kCancelled.
Status WriteFileAtomically(const std::string& path, std::string_view contents);

// The same for contents that come piece by piece. A device or a pipe is written in place.
// Destroying it without Commit() removes the temporary file and leaves the old one as it was.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status Write(std::string_view bytes);
  // kCancelled, with the old file as it was, where an interrupt came before.
  Status Commit();
  // What is free on the file system of `path`; nullopt for a device or a pipe.
  std::optional<uint64_t> FreeBytes() const;

 private:
  AtomicFile(std::string path, std::string target, std::optional<TemporaryName> temporary, int fd)
      : path_(std::move(path)),
        target_(std::move(target)),
        temporary_(std::move(temporary)),
        fd_(fd) {}
  bool in_place() const { return target_ == path_; }
  void Discard();

  std::string path_, target_;
  std::optional<TemporaryName> temporary_;  // of target_, unless in_place()
  int fd_;
};

}  // namespace tutti
