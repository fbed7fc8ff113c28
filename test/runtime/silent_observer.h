// For jobs whose progress no test looks at.
#pragma once

#include "runtime/batch/job.h"

namespace lockstep::test {

class SilentObserver final : public batch::JobObserver {
 public:
  void on_answer(const batch::RowIdentity&, const batch::Finished&) override {}
  void on_error(const batch::RequestError&, const batch::JobStats&) override {}
  void on_step(const batch::JobStats&) override {}
};

}  // namespace lockstep::test
