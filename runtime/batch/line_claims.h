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
  // Whether mine() answers the same whenever it is asked: then lines can be counted beforehand.
  virtual bool is_fixed() const { return true; }
  // Where lines are taken as it goes: how many all processes have taken, as far as this one knows.
  virtual std::size_t taken() const { return 0; }
  // Called once per step: whoever hands out lines answers the others now.
  virtual void progress() {}
};

}  // namespace lockstep::batch
