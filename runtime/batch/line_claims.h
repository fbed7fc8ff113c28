// Which lines of the input a process answers, where several share a job.
#pragma once

#include <cstddef>

namespace lockstep::batch {

class LineClaims {
 public:
  LineClaims() = default;
  LineClaims(const LineClaims&) = delete;
  LineClaims& operator=(const LineClaims&) = delete;
  virtual ~LineClaims() = default;

  // `index`: 0-based number of a line that is not blank. Called with increasing indices, not with
  // all of them: lines that have their row already are not asked about.
  virtual bool mine(std::size_t /*index*/) { return true; }
  // Called once per step: whoever hands out lines answers the others now.
  virtual void progress() {}
};

}  // namespace lockstep::batch
