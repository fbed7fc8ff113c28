// What ranks have to agree on: whether they have one job, whether all can begin it, how it ended.
// Every function is called by all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/batch/ranks.h"

namespace lockstep::batch {

// What makes two ranks' jobs the same.
struct JobIdentity {
  std::string input;                           // an absolute path
  std::optional<std::uint64_t> input_bytes;    // nothing if it cannot be read: opening it tells why
  std::string output;                          // an absolute path, without a rank in its name
  std::map<std::string, std::string> options;  // all that can change a row: name, text of a value
};

// True if all ranks have the same job: they share it. False if each has an output of its own: these
// are different jobs. Throws Error(usage) on all ranks if outputs are the same and jobs are not.
bool have_one_job(Ranks& ranks, const JobIdentity& own);

// Each rank says whether a step of its own failed: an exit code, or 0. The first rank that failed,
// if one did: it tells the user, so that one line is shown and not one for every rank.
struct Failure {
  unsigned rank = 0;
  int code = 0;
};
std::optional<Failure> first_failure(Ranks& ranks, int code);

// The first rank that says something else than rank 0, if one does.
std::optional<unsigned> first_other(Ranks& ranks, std::string_view text);

// How a rank ended, or all of them: the code of the worst, and sums.
struct JobEnd {
  int code = 0;
  std::size_t rows = 0;    // written by this run
  std::size_t errors = 0;  // error rows among them
};
JobEnd end_of_all(Ranks& ranks, const JobEnd& own);

// The more serious of two exit codes: done, error rows, stopped by a signal, anything else.
int worse_code(int a, int b) noexcept;

}  // namespace lockstep::batch
