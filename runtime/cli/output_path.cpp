// Checks on the file system; the file itself is made later, and then it can still fail.
#include "runtime/cli/output_path.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "lockstep/error.h"

namespace lockstep::cli {

namespace {

void require_folder(const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (std::filesystem::is_directory(folder, error)) return;
  throw Error(ErrorCode::cannot_create,
              fmt::format("{}: the folder {} does not exist", path, folder.string()));
}

}  // namespace

void require_creatable(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    throw Error(ErrorCode::cannot_create,
                fmt::format("{}: exists already; choose another name or move it away", path));
  }
  require_folder(path);
}

void require_replaceable(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(ErrorCode::cannot_create, fmt::format("{}: is no file; choose another name", path));
  }
  require_folder(path);
}

void require_output(const std::string& path, bool force) {
  if (force) {
    require_replaceable(path);
  } else {
    require_creatable(path);
  }
}

}  // namespace lockstep::cli
