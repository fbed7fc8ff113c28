// The one exception type of loading and building, and the exit codes that the command line makes of
// it.
#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

// Values are the process exit codes of the lockstep command (the sysexits numbers).
enum class ErrorCode : int {
  usage = 64,          // bad options or request fields
  bad_input = 65,      // input data that cannot be used
  no_input = 66,       // a file that does not exist or cannot be read
  bad_model = 69,      // a model file that is damaged, inconsistent or not supported
  internal = 70,       // a defect of ours
  no_resource = 71,    // memory, threads
  cannot_create = 73,  // an output that exists already or cannot be made
  io = 74,             // reading or writing failed half-way
  interrupted = 75,    // stopped by a signal or a cancel flag; run again to go on
};

class Error : public std::runtime_error {
 public:
  // `what`: one line that says what is wrong, where, and what to do.
  Error(ErrorCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace lockstep
